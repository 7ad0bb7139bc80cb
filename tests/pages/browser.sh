#!/bin/bash
# Opens pages in Chromium: no error on the console, every number of head and tables as in the data, all
# pictures drawn, everything within reach of the keyboard, and no sideways scrolling, in a wide and in a
# narrow window. check.js, which is appended to a copy of each page, does the checks. Screenshots of both
# themes stay in the folder, for a look at them.
#
# usage: browser.sh WORK-FOLDER CAPUCHIN
set -u
work=$1
capuchin=$2
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1

fail() {
    echo "browser.sh: $*"
    exit 1
}
skip() {
    echo "skipped: $*"
    exit 77
}

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    skip "there is no Chromium: install the package chromium"
"$capuchin" sweep --html p 2>&1 | grep -q "built without dygraphs" &&
    skip "the command was built without libjs-dygraphs"

# open WIDTH HEIGHT THEME FILE OPTION...: opens a page in a fresh browser.
open() {
    local width=$1 height=$2 theme=$3 file=$4
    local options=(--headless=new --disable-gpu --hide-scrollbars --enable-logging=stderr
        --user-data-dir="$work/profile" --window-size="$width,$height")
    shift 4

    [ "$theme" = dark ] && options+=(--blink-settings=preferredColorScheme=0)
    [ "$(id -u)" -eq 0 ] && options+=(--no-sandbox)
    timeout 600 "$browser" "${options[@]}" "$@" "file://$work/$file" 2>"$work/stderr"
}

# check NAME WIDTH: what check.js finds in NAME.html.
check() {
    sed "/^<\/body>$/{
r $work/check.html
N
}" "$1.html" >"$1-check.html"
    sed -i "s|^<main>$|<script>window.problems = []; onerror = (text) => { problems.push(text); };\
 alert = () => { problems.push('a script of a name ran'); };</script><main>|" "$1-check.html"
    grep -q "window.problems = \[\]" "$1-check.html" || fail "$1: the checks are not in the page"
    open "$2" 900 light "$1-check.html" --dump-dom --virtual-time-budget=4000 >"$1-$2.dom" ||
        fail "$1: the browser failed: $(tail -n 3 stderr)"
    grep -q ':CONSOLE' stderr && fail "$1 at $2: $(grep ':CONSOLE' stderr | head -n 5)"
    result=$(sed -n 's/.*<pre id="check-result">\(.*\)<\/pre>.*/\1/p' "$1-$2.dom")
    case $result in
    "fine: "*) echo "$1 at $2 pixels: $result" ;;
    *) fail "$1 at $2 pixels: ${result:-the checks did not run}" ;;
    esac
}

{
    echo '<script>'
    cat "$here/check.js"
    echo '</script>'
} >check.html

# A chain with a long way back, so that guided mode swaps, replays and waits, on a simulated device.
trace() {
    printf '{"type":"trace","version":1,"name":"%s"}\n' "$1"
    printf '{"type":"machine","name":"m","memory_bytes":1000000000,"d2h_bytes_per_s":1000000000,'
    printf '"h2d_bytes_per_s":1000000000,"copy_latency_ns":10000}\n'
    HOSTILE=$2 awk -v layers=12 'BEGIN {
        hostile = ENVIRON["HOSTILE"]
        id = 0
        line = "{\"type\":\"tensor\",\"id\":%d,\"name\":\"%s\",\"bytes\":%d,\"kind\":\"%s\"}\n"
        for (i = 0; i < layers; i++) printf line, id++, "layer" i ".weight" hostile, 409600, "parameter"
        for (i = 0; i <= layers; i++) printf line, id++, "layer" i ".output" hostile, 2048000, "activation"
        for (i = 0; i <= layers; i++) printf line, id++, "layer" i ".gradient" hostile, 1024000, "gradient"
        op = "{\"type\":\"op\",\"name\":\"%s\",\"ns\":%d,\"reads\":[%s],\"writes\":[%s],\"updates\":[%s],\"replayable\":%s}\n"
        ops = 0
        printf op, "input" hostile, 100000, "", layers, "", "false"; ops++
        for (i = 0; i < layers; i++) {
            printf op, "forward" i hostile, i % 3 == 0 ? 300000 : 1500000, i "," layers + i, layers + i + 1, "", "true"
            ops++
        }
        printf op, "loss" hostile, 200000, 2 * layers, 3 * layers + 1, "", "false"; ops++
        for (i = layers - 1; i >= 0; i--) {
            printf op, "backward" i hostile, 2500000, i "," layers + i "," 2 * layers + 2 + i, 2 * layers + 1 + i, "", "false"
            ops++
        }
        printf "{\"type\":\"end\",\"tensors\":%d,\"ops\":%d}\n", id, ops
    }'
}

trace net '' >net
# Short enough not to be cut.
trace hostile '<img></script>\"&' >hostile
CAPUCHIN_TIMELINE=1 CAPUCHIN_SAMPLE_EVERY=1 "$capuchin" replay net -b 45% --page 4096 -n 8 --report report \
    --save-plan plan >/dev/null || fail "replay failed"
CAPUCHIN_TIMELINE=1 CAPUCHIN_SAMPLE_EVERY=1 "$capuchin" replay hostile -b 45% --page 4096 -n 4 \
    --report hostile-report --save-plan hostile-plan >/dev/null || fail "replay failed"
"$capuchin" explain report -i 8 --trace net --plan plan --html explain.html >/dev/null || fail "explain"
"$capuchin" explain hostile-report --trace hostile --plan hostile-plan --html hostile.html >/dev/null ||
    fail "explain"
"$capuchin" plan net -b 60% --place --page 4096 --html plan.html >/dev/null || fail "plan"
"$capuchin" sweep net --quick --html sweep.html >/dev/null || fail "sweep"

for page in explain hostile plan sweep; do
    check "$page" 1280
    check "$page" 400
done
for theme in light dark; do
    for width in 1280 400; do
        picture=explain-$width-$theme.png
        open "$width" 4800 "$theme" explain.html --screenshot="$work/$picture"
        [ "$(stat -c %s "$picture")" -gt 20000 ] || fail "$picture is empty"
    done
done
cmp -s explain-1280-light.png explain-1280-dark.png && fail "both themes look the same"
echo "screenshots: $work/explain-*.png"
exit 0
