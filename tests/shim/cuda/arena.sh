#!/bin/bash
# arena.sh COMMAND LIBRARIES PROGRAM: runs a program that divides a large allocation itself, over the driver in LIBRARIES:
# alone, and by `COMMAND run` within shares of the allocation and within the floor, plain, strict and guided. What it
# prints must be the same to the byte.
set -u
command=$1 libraries=$2 program=$3
. "${0%/*}/../within.bash"

measure "$program"
[ "$peak" -eq 9363456 ] || fail "it allocates $peak bytes"
run $((peak * 75 / 100)) "$program"
run $((peak * 55 / 100)) --strict "$program"
run $((peak * 55 / 100)) --mode guided "$program"
# Within 75 % the allocation would fit as a whole. Its indices are read all the same, in each step, and
# what they lead to are the same parts each time.
run $((peak * 75 / 100)) --mode guided --strict "$program"
for name in look_up add_rows; do
    grep -Eq "^slice of [^:]*$name[^:]*: launched [0-9]+ times, .*, indices read for 1[0-9]" "$work/report" ||
        fail "the indices of $name are not read"
done
[ "$(reported 'iterations: ')" -ge 3 ] || fail "no iterations were found"
run $((peak * 55 / 100)) --mode guided --recompute "$program"
run $((peak * 55 / 100)) --mode guided --recompute --strict "$program"
# All that is copied are parts of the two allocations.
copied=$(reported 'copied to the host: ')
[ "$copied" -gt "$peak" ] || fail "hardly anything was copied"
[ $(($(reported 'moved: allocation 1: ') + $(reported 'moved: allocation 2: '))) -eq "$copied" ] ||
    fail "copied, but not moved"
floor=$(reported 'floor: ')
[ "$floor" -lt $((peak * 50 / 100)) ] || fail "the floor is $floor bytes"
run "$floor" "$program"
echo "the same output"
