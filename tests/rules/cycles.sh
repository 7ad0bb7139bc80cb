#!/bin/bash
# cycles.sh ROOM OBJECT...: checks that no files of a room call each other in a cycle. The graph comes
# from the object files, not from the includes: an edge a.c -> b.c means that a.c uses a function or a
# variable that b.c defines. Prints every edge that lies on a cycle, with its symbols, and fails if
# there is one.
set -u
room=$1
shift
[ $# -gt 0 ] || { echo "$room: no object file"; exit 2; }
found=$(mktemp) || exit 2
trap 'rm -f "$found"' EXIT

# Lines "OBJECT:NAME TYPE ...", or "OBJECT:NAME TYPE" if undefined.
nm -A -P "$@" | awk -v room="$room" '
    # The source file of an object, relative to the room: CMake writes "../" as "__/".
    function source(object) {
        sub(/^.*\.dir\//, "", object)
        gsub(/__\//, "", object)
        sub("^(.*/)?" room "/", "", object)
        sub(/\.o$/, "", object)
        return object
    }
    {
        object = $1
        sub(/:$/, "", object)
        file = source(object)
        files[file] = 1
        if ($3 == "U" || $3 == "w" || $3 == "v") {
            if (!((file, $2) in is_used)) {
                is_used[file, $2] = 1
                user[++uses] = file
                used[uses] = $2
            }
        } else if ($3 ~ /^[A-Zu]$/ && !((file, $2) in is_defined)) {
            is_defined[file, $2] = 1
            definers[$2] = definers[$2] " " file
        }
    }
    END {
        for (i = 1; i <= uses; i++) {
            count = split(definers[used[i]], list, " ")
            for (j = 1; j <= count; j++) {
                if (list[j] == user[i]) continue
                reaches[user[i], list[j]] = 1
                symbols[user[i], list[j]] = symbols[user[i], list[j]] " " used[i]
            }
        }
        # Warshall: an edge lies on a cycle if its end reaches its beginning.
        for (k in files)
            for (i in files) {
                if (!((i, k) in reaches)) continue
                for (j in files)
                    if ((k, j) in reaches) reaches[i, j] = 1
            }
        for (edge in symbols) {
            split(edge, end, SUBSEP)
            if ((end[2], end[1]) in reaches)
                print room ": " end[1] " -> " end[2] ":" symbols[edge]
        }
    }' | sort >"$found"
[ "${PIPESTATUS[0]}" -eq 0 ] || { echo "$room: nm failed"; exit 2; }

cat "$found"
[ ! -s "$found" ]
