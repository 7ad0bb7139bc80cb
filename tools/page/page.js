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
/* Marks at round numbers of bytes, which are not round numbers to the library. */
function bytesTicks(most) {
    const text = axisBytes(most);
    let step = 1;
    while (most / step > 6) {
        step *= 2;
    }
    return () => Array.from({length: Math.floor(most / step) + 1},
                            (unused, i) => ({v: i * step, label: text(i * step)}));
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
 * the next; say(index, x, y, row), what is there; choose(index, row) on Enter or a click; keys, [[style of
 * the sign, text]]; xText for the axis, and yText or yTicks; yRange; isShared, whether its range is that of
 * others; rowCount, how many rows it has, for up and down.
 */
function makePicture(id, options) {
    const element = byId(id + '-picture');
    const readout = byId(id + '-readout');
    const cursor = document.createElement('div');
    const [least, most] = options.span;
    let graph = null;
    let at = -1;
    let row = -1;
    let drawnRow = -1;
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
                x: {axisLabelWidth: 76, pixelsPerLabel: 84, drawGrid: false,
                    axisLabelFormatter: (value) => options.xText(value)},
                y: Object.assign({axisLabelFormatter: (value) => options.yText(value),
                                  axisLabelWidth: options.labelWidth || 64, pixelsPerLabel: 36},
                                 options.yTicks ? {ticker: options.yTicks, drawGrid: !options.rowCount} : {}),
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

    /* The row at a height, for pictures with rows. */
    function rowAt(y) {
        const area = graph.getArea();
        const count = options.rowCount();
        return Math.max(0, Math.min(count - 1, Math.floor((y - area.y) / area.h * count)));
    }

    /* Moves the cursor to a stop, and to a row where there are rows. */
    function stand(index, x, y, toRow) {
        if (options.stops.length === 0) {
            return;
        }
        at = Math.max(0, Math.min(index, options.stops.length - 1));
        const stop = options.stops[at];
        if (stop < shown[0] || stop > shown[1]) {
            const half = (shown[1] - shown[0]) / 2;
            show(stop - half, stop + half);
        }
        if (options.rowCount) {
            row = toRow !== undefined ? toRow : y !== undefined ? rowAt(y) : Math.max(0, row);
        }
        readout.textContent = options.say(at, x === undefined ? stop : x, y, row);
        if (options.rowCount && row !== drawnRow) {
            drawnRow = row;
            draw();
        }
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
        if (options.rowCount && (event.key === 'ArrowUp' || event.key === 'ArrowDown')) {
            const next = row + (event.key === 'ArrowUp' ? -1 : 1);
            stand(at < 0 ? nearest(shown[0]) : at, undefined, undefined,
                  Math.max(0, Math.min(options.rowCount() - 1, next)));
        } else if (event.key in moves) {
            stand(at < 0 ? nearest(shown[0]) : moves[event.key]);
        } else if (event.key === '+' || event.key === '=') {
            zoom(0.5);
        } else if (event.key === '-') {
            zoom(2);
        } else if (event.key === '0') {
            show(least, most);
        } else if (event.key === 'Enter' && options.choose && at >= 0) {
            options.choose(at, row);
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
        resize: () => {
            graph.resize();
            draw();
        },
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
            const place = pointer(event);
            options.choose(place.index, options.rowCount ? rowAt(place.y) : undefined);
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
    const isMeasured = marks.run_percent !== undefined;
    if (!isMeasured && marks.plan_percent !== undefined) {
        marks.run_percent = marks.plan_percent;
        marks.run_bytes = marks.plan_bytes;
    }
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
                                         'border: 3px solid var(--wait)',
                                         isMeasured ? 'this run, measured' : 'this plan']]),
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

/* ---- one iteration: memory, tensors ---- */

const KINDS = ['parameters', 'optimizer', 'gradients', 'activations', 'workspace', 'inputs',
               'persistent', 'carried', 'short'];
const STATES = {r: 'resident', l: 'leaving', h: 'on the host', c: 'coming', d: 'dropped',
                p: 'being replayed'};
const isHeld = (state) => state !== 'h' && state !== 'd';

/* What both have in common. null: the page has no such iteration. */
function readView() {
    const view = readJson('view');
    if (!view) {
        return null;
    }
    const ops = readTable('ops-csv', ['name', 'wait_for']);
    const tensors = readTable('tensors-csv', ['name']);
    const stays = readTable('stays-csv', ['state']);
    let end = 0;
    let next = 0;
    let unlimited = 0;
    ops.unlimited_bytes = new Float64Array(ops.count);
    for (let i = 0; i < ops.count; i++) {
        ops.op[i] = isNaN(ops.op[i]) ? next : ops.op[i];
        ops.begin_ns[i] = isNaN(ops.begin_ns[i]) ? end : ops.begin_ns[i];
        ops.duration_ns[i] = ops.duration_ns[i] || 0;
        ops.wait_ns[i] = ops.wait_ns[i] || 0;
        ops.waited_ns[i] = ops.waited_ns[i] || 0;
        unlimited += ops.unlimited_change_bytes[i] || 0;
        ops.unlimited_bytes[i] = unlimited;
        end = ops.begin_ns[i] + ops.duration_ns[i];
        next = ops.op[i] + 1;
    }
    for (let i = 0; i < tensors.count; i++) {
        tensors.held_bytes[i] = tensors.held_bytes[i] || 0;
        tensors.copied_bytes[i] = tensors.copied_bytes[i] || 0;
        tensors.waited_ns[i] = tensors.waited_ns[i] || 0;
    }
    stays.end_ns = new Float64Array(stays.count);
    for (let i = 0; i < stays.count; i++) {
        const isSame = isNaN(stays.tensor[i]);
        stays.tensor[i] = isSame ? stays.tensor[i - 1] : stays.tensor[i];
        stays.begin_ns[i] = !isNaN(stays.begin_ns[i]) ? stays.begin_ns[i]
            : isSame ? stays.end_ns[i - 1] : 0;
        stays.end_ns[i] = isNaN(stays.duration_ns[i]) ? view.time_ns
                                                       : stays.begin_ns[i] + stays.duration_ns[i];
    }
    /* Ops by their number in program order; of replays the op itself. */
    const beginOf = new Float64Array(ops.count + 1).fill(NaN);
    for (let i = 0; i < ops.count; i++) {
        if (isNaN(ops.replay_for[i])) {
            beginOf[ops.op[i]] = ops.begin_ns[i];
        }
    }
    return Object.assign(view, {ops, tensors, stays, beginOf,
                                timeText: axisNs(view.time_ns), span: [0, view.time_ns]});
}

function opAt(view, time) {
    const i = Math.max(0, after(view.ops.begin_ns, time) - 1);
    const isReplay = !isNaN(view.ops.replay_for[i]);
    return (isReplay ? 'replay of ' : 'op ') + view.ops.name[i] + ' (' + view.ops.op[i] + ')';
}

/* What is held, at each time at which that changes: in total, and per kind, with what is always
   there first. */
function sumUp(view) {
    const {stays, tensors} = view;
    const changes = [];
    for (let i = 0; i < stays.count; i++) {
        const bytes = tensors.held_bytes[stays.tensor[i]];
        if (isHeld(stays.state[i]) && bytes > 0) {
            const kind = tensors.kind[stays.tensor[i]];
            changes.push([stays.begin_ns[i], bytes, kind], [stays.end_ns[i], -bytes, kind]);
        }
    }
    changes.sort((left, right) => left[0] - right[0] || left[1] - right[1]);
    const times = [];
    const kinds = KINDS.map(() => []);
    const totals = [];
    const now = KINDS.map(() => 0);
    let total = view.fixed_bytes;
    for (let i = 0; i < changes.length || i === 0; i++) {
        if (i < changes.length) {
            total += changes[i][1];
            now[changes[i][2]] += changes[i][1];
        }
        if (i + 1 >= changes.length || changes[i + 1][0] > changes[i][0]) {
            times.push(i < changes.length ? changes[i][0] : 0);
            totals.push(total);
            kinds.forEach((list, kind) => list.push(now[kind]));
        }
    }
    return {times: Float64Array.from(times), totals: Float64Array.from(totals),
            kinds: kinds.map((list) => Float64Array.from(list))};
}

/* The largest tensors that are held at a time, of one kind if it is given. */
function residentAt(view, time, kind) {
    const {stays, tensors} = view;
    const found = [];
    for (let i = 0; i < stays.count; i++) {
        if (stays.begin_ns[i] <= time && time < stays.end_ns[i] && isHeld(stays.state[i]) &&
            (kind === undefined || tensors.kind[stays.tensor[i]] === kind)) {
            found.push(stays.tensor[i]);
        }
    }
    return found.sort((left, right) => tensors.held_bytes[right] - tensors.held_bytes[left]);
}

function drawMemory(view) {
    const held = sumUp(view);
    const {ops} = view;
    const used = KINDS.map((name, kind) => kind).filter((kind) => held.kinds[kind].some((b) => b > 0));
    const most = Math.max(view.budget_bytes, view.unlimited_peak_bytes,
                          held.totals.reduce((a, b) => Math.max(a, b), 0)) * 1.06;
    let peak = 0;
    held.totals.forEach((total, i) => {
        peak = total > held.totals[peak] ? i : peak;
    });
    view.peak_ns = held.times[peak];

    /* Of each pixel the moments at which least and most is held, in order. */
    function chooseMoments(from, to, width) {
        const first = Math.max(0, after(held.times, from) - 1);
        const last = after(held.times, to);
        if (last - first <= 2 * width) {
            return Array.from({length: last - first}, (unused, i) => first + i);
        }
        const chosen = [];
        for (let pixel = 0, at = first; pixel < width && at < last; pixel++) {
            const end = Math.max(at + 1, Math.min(last,
                after(held.times, from + (to - from) * (pixel + 1) / width)));
            let low = at;
            let high = at;
            for (let i = at; i < end; i++) {
                low = held.totals[i] < held.totals[low] ? i : low;
                high = held.totals[i] > held.totals[high] ? i : high;
            }
            chosen.push(Math.min(low, high));
            if (low !== high) {
                chosen.push(Math.max(low, high));
            }
            at = end;
        }
        return chosen;
    }

    /* The unlimited run, which does not depend on the range but for its density. */
    function ghost(from, to, width) {
        const first = Math.max(0, after(ops.begin_ns, from) - 1);
        const last = Math.min(ops.count, after(ops.begin_ns, to) + 1);
        const group = Math.max(1, Math.floor((last - first) / width));
        const rows = [];
        for (let at = first; at < last; at += group) {
            let high = at;
            for (let i = at; i < Math.min(last, at + group); i++) {
                high = ops.unlimited_bytes[i] > ops.unlimited_bytes[high] ? i : high;
            }
            rows.push([ops.begin_ns[at], ops.unlimited_bytes[high], view.budget_bytes]);
        }
        rows.push([view.time_ns, ops.unlimited_bytes[ops.count - 1], view.budget_bytes]);
        if (rows[0][0] > 0) {
            rows.unshift([0, rows[0][1], view.budget_bytes]);
        }
        return rows;
    }

    view.memory = makePicture('memory', {
        span: view.span,
        isShared: true,
        isStepped: true,
        labels: ['time', 'unlimited', 'budget'],
        rows: ghost,
        series: () => ({
            unlimited: {color: colours.faint, strokePattern: [3, 3], strokeWidth: 1.5},
            budget: {color: colours.budget, strokeWidth: 2},
        }),
        yRange: () => [0, most],
        xText: view.timeText,
        yTicks: bytesTicks(most),
        stops: ops.begin_ns,
        holds: true,
        keys: (view.fixed_bytes > 0 ? [[fill('fixed'), 'always resident']] : [])
            .concat(used.map((kind) => [fill(KINDS[kind]), view.kinds[kind]]),
                    [[stroke('budget'), 'budget'], [stroke('faint', 'dashed'), 'without a limit'],
                     ['opacity: 0.5; ' + fill('wait'), 'compute stood still']]),
        draw(context, area, chart) {
            const [from, to] = chart.xAxisRange();
            const bottom = area.y + area.h;
            const scale = area.h / most;
            const xOf = (time) => area.x + (time - from) / (to - from) * area.w;
            const moments = chooseMoments(from, to, area.w);
            moments.forEach((at, number) => {
                const left = Math.max(area.x, xOf(held.times[at]));
                const next = number + 1 < moments.length ? held.times[moments[number + 1]]
                                                         : view.time_ns;
                const width = Math.min(area.x + area.w, xOf(next)) - left + 0.3;
                let y = bottom - view.fixed_bytes * scale;
                context.fillStyle = colours.fixed;
                context.fillRect(left, y, width, bottom - y);
                used.forEach((kind) => {
                    const height = held.kinds[kind][at] * scale;
                    context.fillStyle = colours[KINDS[kind]];
                    context.fillRect(left, y - height, width, height);
                    y -= height;
                });
            });
            /* Waits shorter than a band is wide make it paler, so that many short ones do not look
               like one long one. */
            context.fillStyle = colours.wait;
            let drawn = -Infinity;
            for (let i = Math.max(0, after(ops.begin_ns, from) - 1); i < ops.count; i++) {
                const end = xOf(ops.begin_ns[i]);
                const width = ops.wait_ns[i] / (to - from) * area.w;
                const begin = Math.max(drawn, end - Math.max(2, width));
                if (ops.wait_ns[i] > 0 && width > 0.02 && end > begin) {
                    context.globalAlpha = 0.5 * Math.max(0.15, Math.min(1, width / 2));
                    context.fillRect(begin, area.y, end - begin, area.h);
                    drawn = end;
                }
                if (begin > area.x + area.w) {
                    break;
                }
            }
            context.globalAlpha = 1;
            view.bands = {bottom, scale};
        },
        say(index, x, y) {
            const at = Math.max(0, after(held.times, x) - 1);
            const height = y === undefined ? -1 : (view.bands.bottom - y) / view.bands.scale;
            let level = view.fixed_bytes;
            const kind = height < level ? undefined : used.find((candidate) => {
                level += held.kinds[candidate][at];
                return height < level;
            });
            const resident = residentAt(view, x, kind);
            return view.timeText(x) + ', ' + opAt(view, x) + ': ' + bytesText(held.totals[at]) +
                ' held of ' + bytesText(view.budget_bytes) + ', ' +
                bytesText(ops.unlimited_bytes[index]) + ' without a limit' +
                (ops.wait_ns[index] > 0 ? '; it waited ' + nsText(ops.wait_ns[index]) : '') +
                (ops.waited_ns[index] > 0
                     ? '; while it ran it waited ' + nsText(ops.waited_ns[index]) + ' for others'
                     : '') + '. ' +
                (kind === undefined ? '' : view.kinds[kind] + ' ' +
                 bytesText(held.kinds[kind][at]) + '. ') + 'Largest: ' +
                resident.slice(0, 6).map((tensor) => view.tensors.name[tensor] + ' ' +
                    bytesText(view.tensors.held_bytes[tensor])).join(', ') +
                (resident.length > 6 ? ' and ' + (resident.length - 6) + ' more' : '');
        },
    });
    byId('to-peak').addEventListener('click', (event) => {
        const half = view.time_ns / 20;
        event.preventDefault();
        view.memory.show(view.peak_ns - half, view.peak_ns + half);
        view.memory.stand(Math.max(0, after(ops.begin_ns, view.peak_ns) - 1));
        byId('memory').scrollIntoView();
        view.memory.focus();
    });
}

/* What tensors of a group have in common: their names without numbers. The number of an allocation
   of an unmodified program is a name of its own; its parts are a group. */
const groupName = (name) => {
    const own = /^allocation \d+/.exec(name);
    const head = own ? own[0] : '';
    return head + name.slice(head.length).replace(/\d+/g, '#');
};

/* Rows of tensors: single ones and, unless all fit on a screen, groups whose names differ in numbers
   only; those that compute waited for first. */
function groupTensors(view) {
    const {tensors, stays} = view;
    const groups = new Map();
    const first = new Int32Array(tensors.count + 1);
    for (let i = 0; i < stays.count; i++) {
        first[stays.tensor[i] + 1] = i + 1;
    }
    for (let i = 0; i < tensors.count; i++) {
        first[i + 1] = Math.max(first[i], first[i + 1]);
        if (first[i + 1] === first[i]) {
            continue;
        }
        const name = groupName(tensors.name[i]);
        const key = name.includes('#') && tensors.count > 40 ? name + '/' + tensors.kind[i] : name + '/' + i;
        if (!groups.has(key)) {
            groups.set(key, {name, members: [], waited: 0, copied: 0, bytes: 0});
        }
        const group = groups.get(key);
        group.members.push(i);
        group.waited += tensors.waited_ns[i];
        group.copied += tensors.copied_bytes[i];
        group.bytes += tensors.held_bytes[i];
    }
    const list = [...groups.values()];
    list.forEach((group) => {
        group.name = group.members.length === 1 ? tensors.name[group.members[0]]
                                                : group.name + ' \u00d7' + group.members.length;
    });
    list.sort((left, right) => right.waited - left.waited || right.copied - left.copied ||
                               right.bytes - left.bytes);
    return {list, first};
}

/* The library puts labels of axes into the page as HTML. */
const asHtml = (text) => text.replace(/[&<>"']/g, (sign) => '&#' + sign.charCodeAt(0) + ';');

function drawTensors(view) {
    const {tensors, stays, ops} = view;
    const {list, first} = groupTensors(view);
    const moves = readTable('moves-csv', []);
    const isNarrow = byId('tensors-picture').clientWidth < 600;
    const labelWidth = isNarrow ? 104 : 220;
    const letters = isNarrow ? 14 : 30;
    const rowHeight = 17;
    const opened = new Set();
    let rows = [];
    let limit = 40;
    let chosen = -1;
    const movesOf = new Map();
    for (let i = 0; i < moves.count; i++) {
        movesOf.set(moves.tensor[i], (movesOf.get(moves.tensor[i]) || []).concat(i));
    }

    function layOut() {
        rows = [];
        list.slice(0, limit).forEach((group) => {
            rows.push({group, members: group.members, name: group.name});
            if (opened.has(group)) {
                group.members.slice(0, 100).forEach((member) =>
                    rows.push({group, members: [member], name: '  ' + tensors.name[member],
                               isInner: true}));
            }
        });
        byId('tensors-picture').style.height = rows.length * rowHeight + 34 + 'px';
    }

    function shorten(name) {
        return name.length <= letters ? name
            : name.slice(0, letters / 2 - 1) + '\u2026' + name.slice(1 - letters / 2);
    }

    function drawStay(context, stay, x, y, width, height) {
        const colour = colours[KINDS[tensors.kind[stays.tensor[stay]]]];
        const middle = y + height / 2;
        const line = Math.min(1.5, height / 4); /* thinner in groups, where rows are low */
        context.fillStyle = colour;
        switch (stays.state[stay]) {
        case 'r':
            context.fillRect(x, y, width, height);
            break;
        case 'l':
        case 'c':
            context.globalAlpha = 0.3;
            context.fillRect(x, y, width, height);
            context.globalAlpha = 1;
            if (height > 4 && width > 3) {
                hatch(context, x, y, width, height, colour, stays.state[stay] === 'c' ? 1 : -1);
            }
            break;
        case 'h':
            context.fillRect(x, middle - line / 2, width, line);
            break;
        case 'd':
            for (let dot = x - x % 6 + 6; dot < x + width; dot += 6) {
                context.fillRect(dot, middle - line / 2, 2, line);
            }
            break;
        default:
            context.fillStyle = colours.replay;
            context.fillRect(x, y, Math.max(1, width), height);
        }
    }

    /* Arrows of the moves of a tensor, from the trigger to the op that needs it. */
    function drawArrows(context, tensor, xOf, y) {
        context.strokeStyle = colours.ink;
        context.fillStyle = colours.ink;
        context.lineWidth = 1;
        (movesOf.get(tensor) || []).forEach((move) => {
            const from = xOf(view.beginOf[moves.in_trigger[move]]);
            const to = xOf(view.beginOf[moves.back_op[move]]);
            if (to - from > 6) {
                context.beginPath();
                context.moveTo(from, y - 3);
                context.lineTo(from, y);
                context.lineTo(to - 4, y);
                context.stroke();
                context.beginPath();
                context.moveTo(to, y);
                context.lineTo(to - 5, y - 3);
                context.lineTo(to - 5, y + 3);
                context.fill();
            }
        });
    }

    function describe(row, x) {
        const states = new Map();
        row.members.forEach((member) => {
            for (let i = first[member]; i < first[member + 1]; i++) {
                if (stays.begin_ns[i] <= x && x < stays.end_ns[i]) {
                    const state = STATES[stays.state[i]];
                    states.set(state, (states.get(state) || 0) + 1);
                }
            }
        });
        const where = [...states].map(([state, count]) =>
            row.members.length === 1 ? state : count + ' ' + state).join(', ');
        const sum = (column) => row.members.reduce((total, member) => total + tensors[column][member], 0);
        return row.name.trim() + ', ' + view.kinds[tensors.kind[row.members[0]]] + ', ' +
            bytesText(sum('held_bytes')) + ': ' + (where || 'without contents') + '; copied ' +
            bytesText(sum('copied_bytes')) + ', waited for ' + nsText(sum('waited_ns')) +
            (row.members.length > 1 && !row.isInner
                ? '. Enter or a click ' + (opened.has(row.group) ? 'folds' : 'unfolds') + ' it' : '');
    }

    function toggle(row) {
        if (row && row.group.members.length > 1) {
            if (!opened.delete(row.group)) {
                opened.add(row.group);
            }
            layOut();
            picture.resize();
        }
    }

    layOut();
    const picture = makePicture('tensors', {
        span: view.span,
        isShared: true,
        labels: ['time', 'none'],
        rows: () => [[0, null], [view.time_ns, null]],
        yRange: () => [0, rows.length],
        xText: view.timeText,
        yText: (value) => value,
        yTicks: () => rows.map((row, i) =>
            ({v: rows.length - i - 0.5, label: asHtml(shorten(row.name))})),
        labelWidth,
        stops: ops.begin_ns,
        holds: true,
        rowCount: () => rows.length,
        keys: [[fill('faint'), 'resident, in the colour of its kind'],
               ['background: repeating-linear-gradient(45deg, var(--faint) 0 2px, transparent 2px ' +
                '5px)', 'leaving'], [stroke('faint'), 'on the host'],
               ['background: repeating-linear-gradient(135deg, var(--faint) 0 2px, transparent 2px ' +
                '5px)', 'coming'], [stroke('faint', 'dotted'), 'dropped'],
               [fill('replay'), 'being replayed']],
        choose: (index, row) => toggle(rows[row === undefined ? chosen : row]),
        draw(context, area, chart) {
            const [from, to] = chart.xAxisRange();
            const height = area.h / rows.length;
            const xOf = (time) => area.x + (time - from) / (to - from) * area.w;
            rows.forEach((row, number) => {
                const top = area.y + number * height + 1.5;
                const each = (height - 3) / row.members.length;
                if (number === chosen) {
                    context.fillStyle = colours.raised;
                    context.fillRect(area.x, top - 1.5, area.w, height);
                }
                row.members.forEach((member, place) => {
                    let drawn = -Infinity;
                    for (let i = first[member]; i < first[member + 1]; i++) {
                        const left = Math.max(area.x - 1, xOf(stays.begin_ns[i]));
                        const right = Math.min(area.x + area.w + 1, xOf(stays.end_ns[i]));
                        if (right > left && right > drawn + 0.2) {
                            drawStay(context, i, left, top + place * each, Math.max(right - left, 0.5),
                                     Math.max(each, 0.5));
                            drawn = right;
                        }
                    }
                });
                if (row.members.length === 1) {
                    drawArrows(context, row.members[0], xOf, top + height - 5);
                }
            });
        },
        say(index, x, y, row) {
            chosen = row === undefined ? Math.max(0, chosen) : row;
            return view.timeText(x) + ', ' + opAt(view, x) + '. ' +
                (rows[chosen] ? describe(rows[chosen], x) : '');
        },
    });
    if (list.length > limit) {
        const bar = document.createElement('p');
        const button = document.createElement('button');
        bar.className = 'bar';
        button.type = 'button';
        button.textContent = 'More rows (' + list.length + ')';
        button.addEventListener('click', () => {
            limit = Math.min(list.length, limit + 60);
            layOut();
            picture.resize();
            bar.hidden = limit === list.length;
        });
        bar.append(button);
        byId('tensors-readout').after(bar);
    }
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
const view = readView();
if (view) {
    drawMemory(view);
    drawTensors(view);
}
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
