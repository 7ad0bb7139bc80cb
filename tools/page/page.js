/*
 * Draws the pictures of a page from the CSV tables in it, and makes its tables sortable.
 *
 * A picture is a dygraph: axes, grid, zooming and curves are its own, rectangles are drawn in its
 * underlay. Each has a cursor, moved by the mouse or the arrow keys, and a line of text below that
 * says what is at the cursor; a screen reader reads that line out. Numbers are kept in typed arrays;
 * of a range only so many points are drawn as there are pixels, and the extremes are among them.
 */
(function () {
'use strict';

const byId = (id) => document.getElementById(id);

/* ---- numbers and tables of data ---- */

function bytesText(bytes) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
    let unit = 0;
    while (bytes >= 1024 && unit < units.length - 1) {
        bytes /= 1024;
        unit++;
    }
    return bytes.toFixed(unit === 0 ? 0 : 2) + ' ' + units[unit];
}

const nsText = (ns) => (ns / 1e6).toFixed(3) + ' ms';
const percentText = (value) => value.toFixed(1) + ' %';

/* Short texts for an axis, whose largest value decides the unit. */
function axisBytes(most) {
    const power = Math.max(0, Math.min(5, Math.floor(Math.log2(Math.max(most, 1)) / 10)));
    const unit = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][power];
    return (value) => +(value / 1024 ** power).toPrecision(4) + ' ' + unit;
}
function axisNs(most) {
    const steps = [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s'], [1, 'ns']];
    const [scale, unit] = steps.find((step) => most >= 2 * step[0]) || steps[3];
    return (value) => +(value / scale).toPrecision(6) + ' ' + unit;
}

/* Splits CSV into lines of fields. */
function parseCsv(text) {
    const lines = [];
    let at = 0;
    while (at < text.length) {
        const line = [];
        for (;;) {
            let field = '';
            if (text[at] === '"') {
                let end = text.indexOf('"', at + 1);
                while (text[end + 1] === '"') {
                    end = text.indexOf('"', end + 2);
                }
                field = text.slice(at + 1, end).replace(/""/g, '"');
                at = end + 1;
            } else {
                let end = at;
                while (end < text.length && text[end] !== ',' && text[end] !== '\n') {
                    end++;
                }
                field = text.slice(at, end);
                at = end;
            }
            line.push(field);
            if (text[at++] !== ',') {
                break;
            }
        }
        lines.push(line);
    }
    return lines;
}

/* A table of data: `count` rows, columns of numbers as typed arrays (NaN where there is none), and of
   texts as they are, which are those named in `texts`. null: the page does not have it. */
function readTable(id, texts) {
    const element = byId(id);
    if (!element) {
        return null;
    }
    const lines = parseCsv(element.textContent.trimStart());
    const titles = lines.shift();
    const table = {count: lines.length};
    titles.forEach((title, column) => {
        table[title] = texts.includes(title)
            ? lines.map((line) => line[column])
            : Float64Array.from(lines, (line) => line[column] === '' ? NaN : +line[column]);
    });
    return table;
}

const readJson = (id) => byId(id) ? JSON.parse(byId(id).textContent) : null;

/* The first index whose value is above `value`, in ascending values. */
function after(values, value) {
    let low = 0;
    let high = values.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (values[middle] <= value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- colours ---- */

let colours = {};
function readColours() {
    const style = getComputedStyle(document.documentElement);
    colours = new Proxy({}, {get: (seen, name) =>
        seen[name] || (seen[name] = style.getPropertyValue('--' + name).trim())});
}

/* Diagonal lines over a rectangle, rising to the right if `lean` is 1, and falling if -1. */
function hatch(context, x, y, width, height, colour, lean) {
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.beginPath();
    for (let at = x - height - (x - height) % 6; at < x + width; at += 6) {
        context.moveTo(at, lean > 0 ? y + height : y);
        context.lineTo(at + height, lean > 0 ? y : y + height);
    }
    context.stroke();
    context.restore();
}

const fill = (name) => 'background: var(--' + name + ')';
const stroke = (name, style) =>
    'height: 0; border-radius: 0; border-top: 3px ' + (style || 'solid') + ' var(--' + name + ')';
const hatched = (name) => 'background: repeating-linear-gradient(135deg, var(--' + name +
    ') 0 1px, transparent 1px 5px)';

/* ---- pictures ---- */

const pictures = [];

/*
 * options: span, [least, most] of x; range, what is shown first; rows(from, to, width) for the
 * library; labels of its columns; series, its options per column; draw(context, area, graph) below the
 * curves; stops, the x values where the cursor may stand, ascending; holds, whether a stop lasts until
 * the next; say(index, x, y), what is there; choose(index) on Enter or a click; keys, [[style of the
 * sign, text]]; xText and yText for axes; yRange; isShared, whether its range is that of others.
 */
function makePicture(id, options) {
    const element = byId(id + '-picture');
    const readout = byId(id + '-readout');
    const cursor = document.createElement('div');
    const [least, most] = options.span;
    let graph = null;
    let at = -1;
    let shown = options.range || options.span;

    function settings() {
        return {
            labels: options.labels,
            dateWindow: shown.slice(),
            valueRange: options.yRange(),
            series: options.series ? options.series() : {},
            stepPlot: Boolean(options.isStepped),
            stackedGraph: Boolean(options.isStacked),
            fillAlpha: 0.85,
            connectSeparatedPoints: false,
            legend: 'never',
            showLabelsOnHighlight: false,
            highlightCircleSize: 0,
            gridLineColor: colours.line,
            axisLineColor: colours.line,
            strokeWidth: 2,
            rightGap: 12,
            axes: {
                x: {axisLabelFormatter: (value) => options.xText(value), axisLabelWidth: 76,
                    pixelsPerLabel: 84, drawGrid: false},
                y: {axisLabelFormatter: (value) => options.yText(value), axisLabelWidth: 64,
                    pixelsPerLabel: 36},
            },
            underlayCallback(context, area, chart) {
                context.save();
                context.beginPath();
                context.rect(area.x, area.y, area.w, area.h);
                context.clip();
                if (options.draw) {
                    options.draw(context, area, chart);
                }
                context.restore();
            },
            zoomCallback: (from, to) => show(from, to),
        };
    }

    function rows() {
        return options.rows(shown[0], shown[1], element.clientWidth);
    }

    function draw() {
        graph.updateOptions(Object.assign({file: rows()}, settings()));
        placeCursor();
    }

    function show(from, to) {
        const width = Math.min(to - from, most - least);
        const start = Math.max(least, Math.min(from, most - width));
        shown = [start, start + width];
        draw();
        if (options.isShared) {
            pictures.filter((other) => other.isShared && other !== picture)
                .forEach((other) => other.follow(shown));
        }
    }

    function placeCursor() {
        const area = graph.getArea();
        const x = at < 0 ? NaN : graph.toDomXCoord(options.stops[at]);
        cursor.hidden = !(x >= area.x && x <= area.x + area.w);
        cursor.style.left = x + 'px';
        cursor.style.top = area.y + 'px';
        cursor.style.height = area.h + 'px';
    }

    function stand(index, x, y) {
        if (options.stops.length === 0) {
            return;
        }
        at = Math.max(0, Math.min(index, options.stops.length - 1));
        const stop = options.stops[at];
        if (stop < shown[0] || stop > shown[1]) {
            const half = (shown[1] - shown[0]) / 2;
            show(stop - half, stop + half);
        }
        readout.textContent = options.say(at, x === undefined ? stop : x, y);
        placeCursor();
    }

    function nearest(x) {
        const next = after(options.stops, x);
        if (options.holds) {
            return Math.max(0, next - 1);
        }
        return next > 0 && (next === options.stops.length ||
                            x - options.stops[next - 1] < options.stops[next] - x) ? next - 1 : next;
    }

    function pointer(event) {
        const box = element.getBoundingClientRect();
        const x = graph.toDataXCoord(event.clientX - box.left);
        return {x, y: event.clientY - box.top, index: nearest(x)};
    }

    function zoom(factor) {
        const middle = at < 0 ? (shown[0] + shown[1]) / 2 : options.stops[at];
        const half = Math.max((shown[1] - shown[0]) * factor, (most - least) / 1e6) / 2;
        show(middle - half, middle + half);
    }

    function press(event) {
        const page = Math.max(1, Math.round(options.stops.length / 20));
        const moves = {ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - page, PageDown: at + page,
                       Home: 0, End: options.stops.length - 1};
        if (event.altKey || event.ctrlKey || event.metaKey) {
            return;
        }
        if (event.key in moves) {
            stand(at < 0 ? nearest(shown[0]) : moves[event.key]);
        } else if (event.key === '+' || event.key === '=') {
            zoom(0.5);
        } else if (event.key === '-') {
            zoom(2);
        } else if (event.key === '0') {
            show(least, most);
        } else if (event.key === 'Enter' && options.choose && at >= 0) {
            options.choose(at);
        } else {
            return;
        }
        event.preventDefault();
    }

    const picture = {
        isShared: options.isShared,
        draw,
        show,
        stand,
        nearest,
        focus: () => element.focus(),
        follow(range) {
            shown = range.slice();
            draw();
        },
    };

    options.keys.forEach(([sign, text]) => {
        const key = document.createElement('span');
        const patch = document.createElement('i');
        patch.style.cssText = sign;
        key.append(patch, text);
        byId(id + '-keys').append(key);
    });
    graph = new Dygraph(element, rows(), settings());
    cursor.className = 'cursor';
    element.append(cursor);
    placeCursor();
    element.addEventListener('keydown', press);
    element.addEventListener('mousemove', (event) => {
        const place = pointer(event);
        stand(place.index, place.x, place.y);
    });
    element.addEventListener('click', (event) => {
        if (options.choose) {
            options.choose(pointer(event).index);
        }
    });
    pictures.push(picture);
    return picture;
}

/* ---- other budgets ---- */

function drawBudgets() {
    const table = readTable('budgets-csv', ['planner']);
    if (!table || table.count === 0) {
        return;
    }
    const marks = readJson('budgets-marks');
    const names = [...new Set(table.planner)];
    const plans = names.filter((name) => name !== 'bound');
    const percents = [...new Set(table.budget_percent)];
    const rows = percents.map((percent, at) => [percent].concat(names.map((name, n) => {
        const overhead = table.overhead_percent[n * percents.length + at];
        return isNaN(overhead) ? null : overhead;
    })));
    /* A comparison of planners has no other picture, so there they have the colours of kinds. */
    const palette = ['activations', 'parameters', 'gradients', 'optimizer', 'persistent', 'inputs',
                     'workspace'];
    const dashes = [null, [8, 3], [2, 3]];
    const percentOf = (bytes) => 100 * bytes / marks.peak_bytes;
    const floor = percentOf(marks.floor_bytes);
    const run = marks.run_percent === undefined ? NaN : percentOf(marks.run_bytes);
    const left = Math.min(percents[0], isNaN(run) ? Infinity : run) - 4;
    const right = Math.max(percents[percents.length - 1], isNaN(run) ? 0 : Math.min(run, 120)) + 2;
    const best = rows.map((row) => Math.min(...row.slice(1, 1 + plans.length)
        .filter((value) => value !== null))).filter(isFinite);
    let most = Math.max(10, ...best) * 1.3;
    if (marks.run_percent < 4 * most) {
        most = Math.max(most, marks.run_percent * 1.15);
    }
    const colourOf = (name) => plans.length === 1 ? 'ink' : palette[plans.indexOf(name) % palette.length];
    const dashOf = (name) => dashes[Math.floor(plans.indexOf(name) / palette.length) % dashes.length];

    makePicture('budgets', {
        span: [Math.max(0, left), right],
        labels: ['budget'].concat(names),
        rows: () => rows,
        yRange: () => [0, most],
        xText: (value) => Math.round(value) + ' %',
        yText: (value) => +value.toPrecision(4) + ' %',
        stops: percents,
        series() {
            return Object.fromEntries(names.map((name) => [name, name === 'bound'
                ? {color: colours.faint, strokePattern: [4, 3], strokeWidth: 2}
                : {color: colours[colourOf(name)], strokePattern: dashOf(name), drawPoints: true,
                   strokeWidth: name === plans[0] ? 3 : 2, pointSize: name === plans[0] ? 4 : 2}]));
        },
        keys: plans.map((name) => [stroke(colourOf(name), dashOf(name) ? 'dashed' : 'solid'), name])
            .concat([[stroke('faint', 'dashed'), 'bound: no plan is below'],
                     [hatched('faint'), 'less than the smallest possible budget']],
                    isNaN(run) ? [] : [['width: 14px; height: 14px; border-radius: 7px; ' +
                                         'border: 3px solid var(--wait)', 'this run, measured']]),
        draw(context, area, chart) {
            const wall = Math.min(area.x + area.w, chart.toDomXCoord(floor));
            if (wall > area.x) {
                hatch(context, area.x, area.y, wall - area.x, area.h, colours.faint, 1);
                context.fillStyle = colours.faint;
                context.fillRect(wall - 2, area.y, 2, area.h);
            }
            if (!isNaN(run)) {
                context.strokeStyle = colours.wait;
                context.lineWidth = 3;
                context.beginPath();
                context.arc(chart.toDomXCoord(run),
                            chart.toDomYCoord(Math.min(marks.run_percent, most * 0.97)), 6, 0,
                            2 * Math.PI);
                context.stroke();
            }
        },
        say(index) {
            const row = rows[index];
            return row[0] + ' % of the peak, ' + bytesText(table.budget_bytes[index]) + ': ' +
                names.map((name, n) => name + ' ' + (row[1 + n] !== null ? percentText(row[1 + n])
                    : name === 'bound' ? 'below the smallest possible budget'
                                       : 'no plan')).join(', ');
        },
    });
}

/* ---- all iterations ---- */

function drawIterations() {
    const table = readTable('iterations-csv', ['label', 'mode']);
    if (!table || table.count === 0) {
        return;
    }
    const count = table.count;
    const parts = [['compute_ns', 'ops'], ['stall_ns', 'wait'], ['recompute_ns', 'replay']];
    const tallest = table.time_ns.reduce((most, ns) => Math.max(most, ns), 1);
    let chosen = -1;

    /* The slowest iteration of each pixel, so that none is narrower than that. */
    function bars(from, to, width) {
        const first = Math.max(0, Math.ceil(from - 0.5));
        const last = Math.min(count - 1, Math.floor(to + 0.5));
        const group = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, width)));
        const list = [];
        for (let at = first; at <= last; at += group) {
            let slowest = at;
            for (let other = at; other < Math.min(at + group, last + 1); other++) {
                slowest = table.time_ns[other] > table.time_ns[slowest] ? other : slowest;
            }
            list.push([slowest, at, group]);
        }
        return list;
    }

    const picture = makePicture('iterations', {
        span: [-0.6, count - 0.4],
        labels: ['iteration', 'time'],
        rows: () => [[-0.6, null], [count - 0.4, null]],
        yRange: () => [0, tallest * 1.12],
        xText: (value) => Math.abs(value - Math.round(value)) < 1e-6 && value >= 0 && value < count
            ? String(table.iteration[Math.round(value)]) : '',
        yText: axisNs(tallest),
        stops: Float64Array.from({length: count}, (unused, index) => index),
        keys: [[fill('ops'), 'ops'], [fill('wait'), 'waiting for memory'],
               [fill('replay'), 'replays'], [fill('fixed'), 'idle, or not timed'],
               ['width: 0; height: 0; border: 6px solid transparent; border-top-color: var(--ink); ' +
                'border-bottom: 0; border-radius: 0', 'left its plan'],
               ['width: 3px; background: var(--ink)', 'began with a new plan']],
        choose(index) {
            const row = byId('iteration-' + table.iteration[index]);
            document.querySelectorAll('#iterations tr.chosen')
                .forEach((other) => other.classList.remove('chosen'));
            chosen = index;
            picture.stand(index);
            if (row) {
                row.classList.add('chosen');
                row.scrollIntoView({block: 'nearest'});
            }
        },
        say(index) {
            const isTimed = !isNaN(table.compute_ns[index]);
            return 'Iteration ' + table.iteration[index] + ' ' + table.label[index] + ', ' +
                table.mode[index] + ': ' + nsText(table.time_ns[index]) +
                (isTimed ? '; ops ' + nsText(table.compute_ns[index]) + ', waiting ' +
                           nsText(table.stall_ns[index]) + ', replays ' +
                           nsText(table.recompute_ns[index])
                         : '; its ops were not timed') +
                (table.predicted_ns[index] > 0 ? '; predicted ' + nsText(table.predicted_ns[index])
                                               : '') +
                (table.diverged[index] > 0 ? '; left its plan' : '') +
                (table.install_ns[index] > 0 ? '; began with a new plan' : '') + '.' +
                (index === chosen ? ' A page about it: capuchin explain REPORT --iteration ' +
                                    table.iteration[index] + ' --html FILE' : '');
        },
        draw(context, area, chart) {
            const [from, to] = chart.xAxisRange();
            const bottom = area.y + area.h;
            const heightOf = (ns) => ns * area.h / (tallest * 1.12);
            bars(from, to, area.w).forEach(([index, first, group]) => {
                const x = chart.toDomXCoord(first - 0.5);
                const full = chart.toDomXCoord(first + group - 0.5) - x;
                const width = full > 4 ? full - 1 : full;
                const middle = x + width / 2;
                const top = bottom - heightOf(table.time_ns[index]);
                let y = bottom;
                context.fillStyle = colours.fixed;
                context.fillRect(x, top, width, bottom - top);
                parts.forEach(([column, colour]) => {
                    const height = heightOf(table[column][index] || 0);
                    context.fillStyle = colours[colour];
                    context.fillRect(x, y - height, width, height);
                    y -= height;
                });
                context.fillStyle = colours.ink;
                for (let other = first; other < Math.min(first + group, count); other++) {
                    if (table.diverged[other] > 0) {
                        context.beginPath();
                        context.moveTo(middle - 5, top - 11);
                        context.lineTo(middle + 5, top - 11);
                        context.lineTo(middle, top - 3);
                        context.fill();
                    }
                    if (table.install_ns[other] > 0) {
                        context.fillRect(middle - 1.5, top - 11, 3, 8);
                    }
                }
            });
        },
    });
}

/* ---- tables ---- */

function makeSortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    const valueOf = (row, column) => {
        const data = row.cells[column].querySelector('data');
        return data ? (data.value === '' ? -Infinity : +data.value) : row.cells[column].textContent;
    };
    heads.forEach((head, column) => {
        const button = document.createElement('button');
        button.type = 'button';
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener('click', () => {
            const sign = head.getAttribute('aria-sort') === 'descending' ? 1 : -1;
            heads.forEach((other) => other.removeAttribute('aria-sort'));
            head.setAttribute('aria-sort', sign < 0 ? 'descending' : 'ascending');
            [...body.rows].sort((left, right) => {
                const a = valueOf(left, column);
                const b = valueOf(right, column);
                return sign * (a < b ? -1 : a > b ? 1 : 0);
            }).forEach((row) => body.append(row));
        });
    });
}

/* Buttons that save a table of data as CSV, or as a list of JSON objects. */
function addSaving(details) {
    const pre = details.querySelector('pre');
    const bar = document.createElement('p');
    const text = () => pre.textContent.trimStart();
    const save = (name, type, contents) => {
        const link = document.createElement('a');
        link.href = URL.createObjectURL(new Blob([contents], {type}));
        link.download = name;
        link.click();
        URL.revokeObjectURL(link.href);
    };
    const add = (label, action) => {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = label;
        button.addEventListener('click', action);
        bar.append(button);
    };
    bar.className = 'bar';
    add('Save as CSV', () => save(pre.id.replace('-csv', '.csv'), 'text/csv', text()));
    add('Save as JSON', () => {
        const lines = parseCsv(text());
        const titles = lines.shift();
        const valueOf = (field) => field === '' ? null : isNaN(field) ? field : +field;
        save(pre.id.replace('-csv', '.json'), 'application/json', JSON.stringify(lines.map((line) =>
            Object.fromEntries(titles.map((title, column) => [title, valueOf(line[column])])))));
    });
    details.insertBefore(bar, pre);
}

/* ---- */

function redraw() {
    readColours();
    pictures.forEach((picture) => picture.draw());
}

readColours();
drawBudgets();
drawIterations();
document.querySelectorAll('table').forEach(makeSortable);
document.querySelectorAll('details.csv').forEach(addSaving);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
addEventListener('beforeprint', () => {
    document.documentElement.dataset.theme = 'light';
    redraw();
});
addEventListener('afterprint', () => {
    delete document.documentElement.dataset.theme;
    redraw();
});
}());
