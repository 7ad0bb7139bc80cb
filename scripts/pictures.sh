#!/bin/bash
# scripts/pictures.sh BIN: makes the pictures of docs/pictures, which the README shows: of a run of a
# known network on the simulated device, so that everyone gets the same ones. Needs Chromium.
set -u
bin=$(cd "$1" && pwd) || exit 1
out=$(cd "$(dirname "$0")/.." && pwd)/docs/pictures
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "pictures: there is no Chromium: install the package chromium" >&2
    exit 1
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

"$bin/capuchin" model gpt2-small --batch 8 --machine a100 -o "$work/gpt2-small" >/dev/null &&
    "$bin/capuchin" replay "$work/gpt2-small" --budget 34% --html "$work/page.html" >/dev/null || exit 1
mkdir -p "$out" || exit 1

# picture SECTION HEIGHT: only the picture of a section, without tables.
picture() {
    local options=(--headless=new --disable-gpu --hide-scrollbars --user-data-dir="$work/profile"
        --window-size="900,$2" --screenshot="$out/$1.png")

    [ "$(id -u)" -eq 0 ] && options+=(--no-sandbox)
    sed "s|^</body>|<style>header, footer, section:not(#$1), .scroll, details, .bar, .readout,\
 section > p { display: none } section { margin: 0; border: 0; padding: 0 }\
 main { padding: 8px 16px }</style></body>|" "$work/page.html" >"$work/$1.html"
    "$browser" "${options[@]}" "file://$work/$1.html" 2>"$work/log" || {
        cat "$work/log" >&2
        exit 1
    }
    echo "$out/$1.png"
}

picture memory 420
picture tensors 830
