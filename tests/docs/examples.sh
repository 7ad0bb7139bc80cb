#!/bin/bash
# examples.sh ROOT LIBRARIES CC: checks that the C blocks of the README compile and run, that the code
# quoted in docs/gpt-layer.md is the code in tests/docs, and that links between documents are valid.
set -u
cd "$1" || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
unset CAPUCHIN_BUDGET CAPUCHIN_DEVICE CAPUCHIN_MODE
status=0

awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' README.md >"$work/readme.c"
[ "$(wc -l <"$work/readme.c")" -le 10 ] || { echo "the README's example has more than ten lines"; status=1; }
for source in "$work/readme.c" tests/docs/gpt_layer.c; do
    program=$work/$(basename "$source" .c)
    [ -s "$source" ] && "$3" -std=c11 -Wall -Wextra -Werror -Iinclude "$source" -o "$program" \
        -L"$2" -Wl,-rpath,"$2" -lcapuchin -lm && "$program" >"$work/out" 2>&1 || {
        echo "$source does not compile or run"
        cat "$work/out"
        status=1
    }
done

# The source contains each quoted block, complete and contiguous.
awk '/^```c$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print > work "/quote" n }' \
    work="$work" docs/gpt-layer.md
quotes=0
for quote in "$work"/quote*; do
    [ -s "$quote" ] || continue
    quotes=$((quotes + 1))
    [[ "$(<tests/docs/gpt_layer.c)" == *"$(<"$quote")"* ]] || {
        echo "docs/gpt-layer.md quotes what is not in tests/docs/gpt_layer.c:"
        cat "$quote"
        status=1
    }
done
[ "$quotes" -gt 0 ] || { echo "docs/gpt-layer.md quotes nothing"; status=1; }

# The anchors of a document, as Markdown makes them of its headings.
anchors() {
    sed -nE '/^```/,/^```/!s/^#+ +(.*)/\1/p' "$1" | tr '[:upper:]' '[:lower:]' |
        sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

for document in *.md docs/*.md docs/results/*.md; do
    for link in $(grep -oE '\]\([^):]+\)' "$document" | tr -d '])('); do
        file=$(dirname "$document")/${link%%#*}
        [ -n "${link%%#*}" ] || file=$document
        [ -e "$file" ] || { echo "$document: no $link"; status=1; continue; }
        [[ "$link" != *#* ]] || anchors "$file" | grep -qxF "${link#*#}" || {
            echo "$document: no heading for $link"
            status=1
        }
    done
done
exit $status
