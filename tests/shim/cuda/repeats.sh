#!/bin/bash
# repeats.sh COMMAND LIBRARIES PROGRAM: runs a program whose launches may be repeated, or must not be, over the driver in
# LIBRARIES: alone, and by `COMMAND run --recompute` within shares of what it allocates, with plans that only repeat, and
# with plans that do what is faster over slow links; plain and strict, and with iterations that begin anywhere. What it
# prints must be the same to the byte, launches must be repeated, and only those that may be.
set -u
command=$1 libraries=$2 program=$3
. "${0%/*}/../within.bash"
export CAPUCHIN_WAIT_FOR_PLAN=1

# checked LEAST [strict]: of the report, that so many launches were repeated, and what may be. Strict mode runs each of
# them twice, at once, when the small table is still as it was.
checked() {
    local repeated
    repeated=$(sed -n 's/^repeatable launches: [0-9]*, repeated \([0-9]*\) times$/\1/p' "$work/report")
    [ "${repeated:-0}" -ge "$1" ] || fail "$repeated launches were repeated"
    if grep '^repeatable _Z' "$work/report" | grep -Ev '^repeatable _Z[0-9]*(activate|reverse|look_up_table)P'; then
        fail "launches that differ each time may be repeated"
    fi
    if [ "${2:-}" = strict ]; then
        grep -Eq '^repeatable _Z[0-9]*look_up_table[^:]*: ([0-9]+) launches, repeated \1 times$' "$work/report" ||
            fail "launches with another small table were not run twice, or were repeated"
    elif grep -E '^repeatable _Z[0-9]*look_up_table' "$work/report" | grep -v ', repeated 0 times$'; then
        fail "a launch was repeated with other contents of the small table"
    fi
}

measure "$program"
export CAPUCHIN_PLANNER=recompute
for percent in 75 55; do
    run $((peak * percent / 100)) --mode guided --recompute "$program"
    checked 3
done
run $((peak * 55 / 100)) --mode guided --recompute --strict "$program"
checked 3 strict
unset CAPUCHIN_PLANNER
export CAPUCHIN_D2H=32MiB CAPUCHIN_H2D=32MiB
run $((peak * 55 / 100)) --mode guided --recompute "$program"
checked 0
unset CAPUCHIN_D2H CAPUCHIN_H2D
floor=$(reported 'floor: ')
[ "$floor" -lt $((peak / 2)) ] || fail "a floor of $floor bytes"
run "$floor" --mode guided --recompute "$program"
checked 0
# Iterations that end in the middle, of which most leave their plan.
for kernel in reverse in_place 'add_product|activate'; do
    run $((peak * 55 / 100)) --mode guided --recompute --iteration-kernel "$kernel" "$program"
    checked 0
done
# Nothing is repeated unless asked for, nor in other modes.
run $((peak * 55 / 100)) --mode guided "$program"
! grep -q '^repeatable' "$work/report" || fail "repeated without being asked"
# What a step allocates and frees has the same number in each.
grep -Eq '^moved: allocation [0-9]+: [1-9][0-9]* bytes out, [0-9]+ back; 8 of them, at most 65536 bytes, the last at 0x' \
    "$work/report" || fail "no allocation that was copied in each step"
if "$command" run --recompute "$program" >"$work/output" 2>"$work/messages"; then
    fail "--recompute without --mode guided"
fi
grep -q -- '--recompute needs --mode guided' "$work/messages" || fail "no line about the mode"
echo "the same output"
