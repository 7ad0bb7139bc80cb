#!/bin/bash
# How large pages are, and how long a browser takes to draw them: a page about a plan for a made-up
# transformer of 5,000 ops, and of 50,000. Prints a JSON line each with --json, otherwise a table: bytes,
# time to write the page without planning, and in Chromium the time until everything is drawn and of "To
# the peak", which draws all pictures of the iteration again; medians of five. Without Chromium only size
# and writing.
#
# usage: page.sh CAPUCHIN [--json] [OPS...]
set -u
capuchin=$1
shift
as_json=
[ "${1:-}" = --json ] && { as_json=1; shift; }
[ $# -gt 0 ] || set -- 5000 50000
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)

# trace OPS: an iteration of layers with ten forward and twenty backward ops each.
trace() {
    awk -v ops="$1" 'BEGIN {
        split("norm1 query key value scores attention out norm2 up down", part, " ")
        layers = int(ops / 30)
        print "{\"type\":\"trace\",\"version\":1,\"name\":\"transformer\"}"
        print "{\"type\":\"machine\",\"name\":\"m\",\"memory_bytes\":85899345920,\"d2h_bytes_per_s\":" \
            "25000000000,\"h2d_bytes_per_s\":25000000000,\"copy_latency_ns\":10000}"
        tensor = "{\"type\":\"tensor\",\"id\":%d,\"name\":\"block%d.%s.%s\",\"bytes\":%d,\"kind\":\"%s\"}\n"
        op = "{\"type\":\"op\",\"name\":\"block%d.%s.%s\",\"ns\":%d,\"reads\":[%s],\"writes\":[%d]," \
            "\"updates\":[],\"replayable\":%s}\n"
        for (i = 0; i < layers * 10; i++) {
            l = int(i / 10); p = part[i % 10 + 1]; size = 4194304 * (1 + i % 3)
            printf tensor, 4 * i, l, p, "w", 1048576 * (1 + i % 4), "parameter"
            printf tensor, 4 * i + 1, l, p, "y", size, "activation"
            printf tensor, 4 * i + 2, l, p, "dy", size, "activation"
            printf tensor, 4 * i + 3, l, p, "w.gradient", 1048576 * (1 + i % 4), "gradient"
        }
        for (i = 0; i < layers * 10; i++)
            printf op, int(i / 10), part[i % 10 + 1], "forward", 150000 + 7919 * (i % 13),
                (i > 0 ? 4 * i - 3 "," : "") 4 * i, 4 * i + 1, "true"
        for (i = layers * 10 - 1; i >= 0; i--) {
            last = i == layers * 10 - 1
            printf op, int(i / 10), part[i % 10 + 1], "backward", 150000 + 7919 * (i % 13),
                (last ? "" : 4 * i + 6 ",") 4 * i "," 4 * i + 1, 4 * i + 2, "true"
            printf op, int(i / 10), part[i % 10 + 1], "weights", 150000 + 7919 * (i % 13),
                4 * i + 2 "," 4 * i + 1, 4 * i + 3, "true"
        }
        printf "{\"type\":\"end\",\"tensors\":%d,\"ops\":%d}\n", layers * 40, layers * 30
    }'
}

median() {
    sort -n | sed -n 3p
}

# drawn FILE: "ready redraw" in ms, once.
drawn() {
    local options=(--headless=new --disable-gpu --user-data-dir="$work/profile" --window-size=1280,900)

    [ "$(id -u)" -eq 0 ] && options+=(--no-sandbox)
    timeout 120 "$browser" "${options[@]}" --dump-dom --timeout=60000 "file://$1" 2>/dev/null |
        sed -n 's/.*<pre id="times">\(.*\)<\/pre>.*/\1/p'
}

[ -n "$as_json" ] || printf '%8s %12s %12s %12s %12s\n' ops bytes 'written, ms' 'drawn, ms' 'redrawn, ms'
for ops in "$@"; do
    trace "$ops" >"$work/trace"
    "$capuchin" plan "$work/trace" --budget 60% --planner swap --effort quick -o "$work/plan" >/dev/null ||
        exit 1
    for _ in 1 2 3 4 5; do
        begin=$(date +%s%N)
        "$capuchin" simulate "$work/trace" "$work/plan" --html "$work/page.html" >/dev/null || exit 1
        echo $((($(date +%s%N) - begin) / 1000000))
    done >"$work/written"
    bytes=$(stat -c %s "$work/page.html")
    ready=- redraw=-
    if [ -n "$browser" ]; then
        sed "s|^</body>|<script>addEventListener('load', () => setTimeout(() => {\
 const ready = performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd;\
 const begin = performance.now(); document.getElementById('to-peak').click();\
 const text = document.createElement('pre'); text.id = 'times';\
 text.textContent = ready.toFixed(0) + ' ' + (performance.now() - begin).toFixed(0);\
 document.body.append(text); }));</script></body>|" "$work/page.html" >"$work/timed.html"
        for _ in 1 2 3 4 5; do
            drawn "$work/timed.html"
        done >"$work/drawn"
        ready=$(cut -d ' ' -f 1 "$work/drawn" | median)
        redraw=$(cut -d ' ' -f 2 "$work/drawn" | median)
    fi
    written=$(median <"$work/written")
    if [ -n "$as_json" ]; then
        echo "{\"ops\":$ops,\"bytes\":$bytes,\"written_ms\":$written,\"drawn_ms\":\"$ready\",\"redrawn_ms\":\"$redraw\"}"
    else
        printf '%8s %12s %12s %12s %12s\n' "$ops" "$bytes" "$written" "$ready" "$redraw"
    fi
done
