#!/bin/bash
# scripts/rooms.sh [TREE]: how the source of a tree (this one) is divided. First how large the interface of the library is. For each
# room: its lines, files and their folders, lines per file, includes between folders, and includes that its tests/rules/directions.sh rejects, as against their order. Then the ten
# structs with the most fields, and how often the context is mentioned in each folder of runtime.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2
rules=tests/rules/directions.sh

product="include base device allocator policy runtime parallel kernels models interpose shim tools"

# sources FOLDER: what is compiled or included in it and below it.
sources() {
    find "$1" -name '*.[ch]' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' | sort
}

rejected=$(bash "$rules" .)

# upward ROOM: how many of its includes go against the order of its folders; "-": they have none.
upward() {
    if grep -q "^ *folders\[\"$1\"\]" "$rules"; then
        grep -c ": $1/[^ ]* may not include $1/" <<<"$rejected"
    else
        echo -
    fi
}

# rows FILE FIRST LAST: how many lines of a file between two patterns begin a row of an X macro.
rows() {
    sed -n "/$2/,/$3/p" "$1" | grep -cE '^ *X\('
}

public=$(find include/capuchin -name '*.h' ! -name private.h)
echo "| interface | |"
echo "| --- | --- |"
echo "| functions | $(grep -hE '^CAPU_API ' $public | wc -l) |"
echo "| statuses | $(rows include/capuchin/status.h 'define CAPU_STATUS_LIST' 'define CAPU_STATUS_ENUMERATOR') |"
echo "| fields of \`capu_config\` | $(sed -n '/^typedef struct capu_config {/,/^} capu_config;/p' include/capuchin/context.h |
    grep -cE '^    [a-z].*;') |"
echo "| variables | $(grep -ohE '"CAPUCHIN_[A-Z0-9_]+"' runtime/context/config.c | sort -u | wc -l) |"
echo "| counters of \`capu_report\` | $(rows include/capuchin/report.h 'define CAPU_REPORT_COUNTERS' '^$') |"
echo
echo "| room | lines | files | folders | lines per file: median, most | files of most in a folder | includes between folders | upward |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
for room in $product examples bench tests; do
    [ -d "$room" ] || continue
    lines=$(sources "$room" | xargs wc -l | grep -v ' total$' | awk '{ print $1 }' | sort -n)
    folders=$(sources "$room" | xargs -n 1 dirname | sort | uniq -c | sort -rn)
    between=$(sources "$room" | xargs grep -HE "^#include \"$room/" /dev/null |
        awk '
            # The folder of a path in the room.
            function folder(path) { return split(path, part, "/") > 2 ? part[2] : "" }
            { split($0, half, ":"); sub(/^#include "/, "", half[2]); count += folder(half[1]) != folder(half[2]) }
            END { print count + 0 }')
    echo "| \`$room\` | $(awk '{ sum += $1 } END { print sum }' <<<"$lines") | $(wc -l <<<"$lines") | $(wc -l <<<"$folders") | $(awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] ", " all[NR] }' <<<"$lines") | $(awk 'NR == 1 { print $1 }' <<<"$folders") | $between | $(upward "$room") |"
done

echo
echo "| struct | fields | file |"
echo "| --- | --- | --- |"
for room in $product; do
    [ -d "$room" ] && sources "$room"
done | xargs awk '
    /^struct [a-z_]+ \{/ || /^typedef struct [a-z_]* ?\{/ { name = $1 == "typedef" ? $3 : $2; fields = 0; inside = 1; next }
    inside && /^\}/ { if (name != "") print fields, name, FILENAME; inside = 0 }
    inside && /;/ { sub(/\/\*.*/, ""); n = gsub(/;/, ";"); fields += n + gsub(/, \**[a-z]/, "&") }' |
    sort -rn | head -10 | sed -E 's/^([0-9]+) ([^ ]+) (.*)/| `\2` | \1 | `\3` |/'

echo
echo "| folder of runtime | mentions of capu_context |"
echo "| --- | --- |"
find runtime -name '*.[ch]' -exec dirname {} + | sort -u | while read -r folder; do
    echo "| \`$folder\` | $(find "$folder" -maxdepth 1 -name '*.[ch]' -exec grep -ho 'capu_context \*' {} + | wc -l) |"
done
