#!/bin/bash
# arena.sh COMMAND LIBRARIES PROGRAM: runs a program that divides one allocation itself, over the driver in LIBRARIES:
# alone, and by `COMMAND run` within shares of the allocation and within the floor, plain, strict and guided. What it
# prints must be the same to the byte.
set -u
command=$1 libraries=$2 program=$3
. "${0%/*}/within.bash"

measure "$program"
[ "$peak" -eq 6291456 ] || fail "it allocates $peak bytes"
run $((peak * 75 / 100)) "$program"
run $((peak * 55 / 100)) --strict "$program"
run $((peak * 55 / 100)) --mode guided "$program"
run $((peak * 55 / 100)) --mode guided --recompute "$program"
run $((peak * 55 / 100)) --mode guided --recompute --strict "$program"
# All that is copied are parts of the one allocation.
[ "$(reported 'copied to the host: ')" -gt "$peak" ] || fail "hardly anything was copied"
[ "$(reported 'moved: allocation 1: ')" -eq "$(reported 'copied to the host: ')" ] || fail "copied, but not moved"
floor=$(reported 'floor: ')
[ "$floor" -lt $((peak * 50 / 100)) ] || fail "the floor is $floor bytes"
run "$floor" "$program"
echo "the same output"
