#!/bin/bash
# tested_by.sh ROOT: the column "tested by" of the rooms' READMEs names tests that exist. A name with a folder is a path in
# tests/, with or without the ending of the file; one without is a file of tests/unit/ROOM. Every table of files has the
# column, and no cell is empty. A room's README names each test of tests/unit/ROOM, and tests/api/README.md each of
# tests/api. Prints what is wrong; fails on anything.
set -u
cd "$1" || exit 2

# named README: lines "NUMBER NAME" for what the column names; "NUMBER" for an empty cell, or a table without the column.
named() {
    awk -F'|' '
        !/^\|/ { column = 0; next }
        /^\| (file|files|folder|family) / {
            column = 0
            for (i = 2; i < NF; i++) if ($i == " tested by ") column = i
            if (!column) print FNR
            next
        }
        !column || /^\| --- / { next }
        {
            cell = $column
            if (cell !~ /`/) print FNR
            while (match(cell, /`[^`]*`/)) {
                print FNR, substr(cell, RSTART + 1, RLENGTH - 2)
                cell = substr(cell, RSTART + RLENGTH)
            }
        }' "$1"
}

# exists ROOM NAME: there is such a test.
exists() {
    local ending path=tests/$2
    [[ $2 == */* ]] || path=tests/unit/$1/$2
    for ending in "" .c .cc .cpp .cu .sh; do
        [ -e "$path$ending" ] && return
    done
    return 1
}

# unnamed README FOLDER: of the tests in the folder and below, those that the README does not name.
unnamed() {
    local test name
    find "$2" -name '*_test.c' | sort | while read -r test; do
        name=${test##*/}
        grep -q "[\`/]${name%.c}\`" "$1" || echo "$1: does not name $test"
    done
}

# check: all READMEs of the tree in the current folder.
check() {
    local readme room number name
    for readme in */README.md; do
        room=${readme%/*}
        [ "$room" = tests ] && continue
        named "$readme" | while read -r number name; do
            if [ -z "$name" ]; then
                echo "$readme:$number: nothing is \"tested by\" a test"
            elif ! exists "$room" "$name"; then
                echo "$readme:$number: there is no test $name"
            fi
        done
        [ ! -d "tests/unit/$room" ] || unnamed "$readme" "tests/unit/$room"
    done
    unnamed tests/api/README.md tests/api
}

# Checks the check, on a tree with one mistake of each kind.
probe=$(mktemp -d) || exit 2
trap 'rm -rf "$probe"' EXIT
mkdir -p "$probe/room" "$probe/tests/unit/room" "$probe/tests/api"
touch "$probe/tests/unit/room/"{named,left}_test.c "$probe/tests/api/"{one,two}_test.c
echo '| `one_test` |' >"$probe/tests/api/README.md"
printf '%s\n' '| file | tested by |' '| --- | --- |' '| `a` | `named_test`, `api/one_test` |' '| `b` | |' \
    '| `c` | `gone_test` |' '| `d` | `api/gone.sh` |' '' '| file | purpose |' '| --- | --- |' '| `e` | - |' \
    >"$probe/room/README.md"
wrong=$(cd "$probe" && check)
[ "$(grep -c . <<<"$wrong")" -eq 6 ] || { echo "tested_by.sh: of six mistakes it finds:"; echo "$wrong"; exit 1; }

wrong=$(check)
[ -z "$wrong" ] || { echo "$wrong"; exit 1; }
