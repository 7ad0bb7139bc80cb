#!/bin/bash
# headers.sh INCLUDE CC CXX: each public header compiles alone, twice included, as C11 and as C++17.
set -u
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
status=0
count=0
for header in "$1"/capuchin/*.h; do
    name=capuchin/${header##*/}
    printf '#include "%s"\n#include "%s"\ntypedef int not_empty;\n' "$name" "$name" >"$work/one.c"
    cp "$work/one.c" "$work/one.cpp"
    "$2" -std=c11 -pedantic -Wall -Wextra -Wstrict-prototypes -Werror -I"$1" -fsyntax-only \
        "$work/one.c" || { echo "$name: not as C11"; status=1; }
    "$3" -std=c++17 -pedantic -Wall -Wextra -Werror -I"$1" -fsyntax-only \
        "$work/one.cpp" || { echo "$name: not as C++17"; status=1; }
    count=$((count + 1))
done
[ "$count" -gt 1 ] || { echo "no headers in $1"; status=1; }
exit $status
