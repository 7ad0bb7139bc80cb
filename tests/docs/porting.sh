#!/bin/bash
# porting.sh ROOT LIBRARIES CC PORT: checks docs/porting.md. The code that it quotes is that of
# examples/ports/after.c; porting.c runs each of its numbered statements; and PORT, the program of that
# example, needs the pages that the document says.
set -u
cd "$1" || exit 2
libraries=$2
cc=$3
port=$4
document=docs/porting.md
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
unset CAPUCHIN_BUDGET CAPUCHIN_MODE CAPUCHIN_STRICT
status=0

complain() {
    echo "$document: $*"
    status=1
}

awk '/^```c$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print > work "/quote" n }' work="$work" "$document"
quotes=0
for quote in "$work"/quote*; do
    [ -s "$quote" ] || continue
    quotes=$((quotes + 1))
    [[ "$(<examples/ports/after.c)" == *"$(<"$quote")"* ]] || complain "not in examples/ports/after.c: $(<"$quote")"
done
[ "$quotes" -ge 4 ] || complain "only $quotes quotes"

"$cc" -std=c11 -Wall -Wextra -Werror -Iinclude tests/docs/porting.c -o "$work/porting" -L"$libraries" \
    -Wl,-rpath,"$libraries" -lcapuchin || exit 1
CAPUCHIN_REPORT=$work/report "$work/porting" >"$work/held" || complain "a statement does not hold"
grep -oE '^[0-9]+\.' "$document" | tr -d . >"$work/numbered"
diff "$work/numbered" "$work/held" || complain "other statements ('<') than porting.c checks ('>')"

# A shell reports a program that signal 11, a segmentation fault, has ended as 128 + 11.
{ "$work/porting" touch; } >"$work/out" 2>&1
[ $? -eq 139 ] || complain "evicted memory can be touched: $(<"$work/out")"

# run PAGE BUDGET
run() {
    CAPUCHIN_DEVICE=host CAPUCHIN_PAGE=$1 CAPUCHIN_BUDGET=$2 "$port" >"$work/out" 2>&1
}
run 4KiB 2600KiB || complain "examples/ports does not run in 2.6 MiB: $(<"$work/out")"
! run 64KiB 6MiB || complain "examples/ports runs in 6 MiB with pages of 64 KiB"
grep -q 'always resident' "$work/out" || complain "the error does not say why: $(<"$work/out")"
exit $status
