#!/bin/bash
# dataset.sh COMMAND LIBRARIES PROGRAM: runs a program that keeps all of its data on the device, and takes another part of
# it in each step, over the driver in LIBRARIES: alone, and by `COMMAND run` within shares of what it allocates, passive,
# guided and strict. What it prints must be the same to the byte, and its steps must follow plans once they are found.
set -u
command=$1 libraries=$2 program=$3
. "${0%/*}/../within.bash"
export CAPUCHIN_WAIT_FOR_PLAN=1

measure "$program"
run $((peak * 75 / 100)) "$program"
for options in "" --strict; do
    # shellcheck disable=SC2086 # words on purpose
    run $((peak * 55 / 100)) --mode guided $options "$program"
    # After 2,000 calls, or 96 of 150 steps, steps are looked for wherever they are in the data.
    grep -Eq '^period: 21 calls, .*, found 1 times, 0 pauses$' "$work/report" || fail "a step is no period"
    [ "$(reported 'guided iterations: ')" -ge 40 ] || fail "few steps followed a plan"
    [ "$(reported 'iterations that left their plan: ')" -eq 0 ] || fail "steps left their plans"
done
floor=$(reported 'floor: ')
run "$floor" --mode guided "$program"
echo "the same output"
