/* What browser.sh checks in a page. The result is the text of a new element. */
addEventListener('load', () => setTimeout(() => {
    'use strict';
    let checks = 0;
    const expect = (isTrue, text) => {
        checks++;
        if (!isTrue) {
            problems.push(text);
        }
    };
    const all = (selector, within) => [...(within || document).querySelectorAll(selector)];
    const byId = (id) => document.getElementById(id);
    const press = (element, key) => element.dispatchEvent(
        new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
    const json = (id) => byId(id) && JSON.parse(byId(id).textContent);
    const linesOf = (id) => byId(id).textContent.trim().split('\n').slice(1);

    /* Numbers of the head are those of the data. */
    const data = json('data');
    const figure = (id) => +byId(id).querySelector('dd > data').value;
    const equal = (id, value) =>
        expect(figure(id) === value, 'figure ' + id + ' is ' + figure(id) + ', not ' + value);
    if (data.iteration) {
        equal('peak', data.iteration.peak_bytes);
        equal('cost', data.iteration.stall_ns + data.iteration.recompute_ns);
        equal('floor', data.iteration.floor_bytes);
        equal('need', data.iteration.live_peak_bytes);
    } else if (data.iteration_ns) {
        equal('peak', data.peak_bytes);
        equal('cost', data.iteration_ns - data.ideal_ns);
        equal('floor', data.floor_bytes);
    } else {
        equal('floor', data.floor_bytes);
        equal('need', data.peak_bytes);
    }

    /* Texts of numbers are those of their exact values. */
    const units = {B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, ms: 1e6};
    all('data').forEach((element) => {
        const [number, unit] = element.textContent.split(' ');
        if (units[unit]) {
            expect(Math.abs(+number * units[unit] - element.value) <= 0.0051 * units[unit],
                   element.textContent + ' is not ' + element.value);
        }
    });
    if (byId('iterations-table')) {
        const rows = linesOf('iterations-csv').map((line) => line.split(','));
        all('#iterations-table tbody tr').forEach((row) => {
            const values = all('data', row).map((element) => element.value);
            const found = rows.find((fields) => fields[0] === values[0]);
            expect(found && found[3] === values[1] && found[5] === values[3] && found[6] === values[4],
                   'the row of iteration ' + values[0]);
        });
    }

    /* Everything can be reached: links, buttons, pictures and tables, the way to the peak first. */
    const stops = all('a[href], button, summary, [tabindex="0"]')
        .filter((element) => element.getClientRects().length > 0);
    if (json('view')) {
        expect(stops[0] === byId('to-peak'), 'the first stop is not the way to the peak');
    }
    const pictures = all('.picture');
    expect(pictures.length > 0, 'no pictures');
    pictures.forEach((picture) => {
        const readout = byId(picture.id.replace('picture', 'readout'));
        const canvas = picture.querySelector('canvas');
        expect(stops.includes(picture), picture.id + ' cannot be reached');
        expect(picture.getAttribute('aria-label'), picture.id + ' has no name');
        expect(canvas, picture.id + ' is not drawn');
        const pixels = new Uint32Array(canvas.getContext('2d')
            .getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        expect(new Set(pixels).size > 2, picture.id + ' is empty');
        picture.focus();
        expect(document.activeElement === picture, picture.id + ' takes no focus');
        press(picture, 'ArrowRight');
        const first = readout.textContent;
        expect(first.trim().length > 10, picture.id + ' says nothing');
        press(picture, 'End');
        expect(readout.textContent !== first || pictures.length === 0, picture.id + ': End moves nothing');
        ['+', '+', '-', 'ArrowLeft', 'PageUp', 'PageDown', 'Home', '0', 'ArrowDown', 'Enter', 'Enter',
         'ArrowUp'].forEach((key) => press(picture, key));
        expect(readout.textContent === first || readout.textContent.length > 10,
               picture.id + ' says nothing after moving');
        picture.dispatchEvent(new MouseEvent('mousemove', {bubbles: true,
            clientX: picture.getBoundingClientRect().left + picture.clientWidth * 0.6,
            clientY: picture.getBoundingClientRect().top + 120}));
        expect(readout.textContent.length > 10, picture.id + ' says nothing under the mouse');
    });
    if (json('view')) {
        byId('to-peak').click();
        const text = byId('memory-readout').textContent;
        expect(document.activeElement === byId('memory-picture'), 'the peak is not focused');
        expect(/ held of .*Largest: ./.test(text), 'the peak is not named: ' + text);
        press(byId('memory-picture'), '0');
    }
    if (byId('iterations-picture')) {
        press(byId('iterations-picture'), 'Home');
        press(byId('iterations-picture'), 'Enter');
        expect(all('tr.chosen').length === 1, 'Enter chooses no iteration');
    }

    /* Tables can be sorted, by number and by name. */
    all('table').forEach((table) => {
        all('th', table).forEach((head, column) => {
            head.querySelector('button').click();
            const values = all('tbody tr', table).map((row) => row.cells[column])
                .map((cell) => cell.querySelector('data') ? cell.querySelector('data') : cell.textContent)
                .map((value) => value.value === '' ? -Infinity
                    : value.value !== undefined ? +value.value : value);
            expect(head.getAttribute('aria-sort') === 'descending' &&
                   values.every((value, i) => i === 0 || !(value > values[i - 1])),
                   table.id + ' is not sorted by column ' + column);
        });
    });

    /* Names are text. */
    expect(all('img').length === 0, 'a name became an element');

    /* Nothing scrolls sideways but tables and data, and labels do not cover each other. */
    const root = document.documentElement;
    expect(root.scrollWidth <= innerWidth, 'the page is ' + root.scrollWidth + ' wide');
    pictures.forEach((picture) => {
        const boxes = all('.dygraph-axis-label', picture).map((label) => {
            const range = document.createRange();
            range.selectNodeContents(label);
            return {text: label.textContent, box: range.getBoundingClientRect()};
        }).filter(({text}) => text !== '');
        boxes.forEach((one, i) => boxes.slice(i + 1).forEach((other) => {
            const across = Math.min(one.box.right, other.box.right) -
                Math.max(one.box.left, other.box.left);
            const down = Math.min(one.box.bottom, other.box.bottom) -
                Math.max(one.box.top, other.box.top);
            expect(across <= 1 || down <= 3,
                   picture.id + ': "' + one.text + '" covers "' + other.text + '"');
        }));
    });

    const result = document.createElement('pre');
    result.id = 'check-result';
    result.textContent = problems.length === 0 ? 'fine: ' + checks + ' checks'
                                               : problems.slice(0, 8).join(' / ').replace(/\n/g, ' ');
    document.body.append(result);
}, 300));
