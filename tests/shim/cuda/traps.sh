#!/bin/bash
# traps.sh COMMAND LIBRARIES PROGRAM PER_THREAD: runs the traps, built with both kinds of default stream, over the
# driver in LIBRARIES: alone, and by `COMMAND run` within 75 and 55 % of what they allocate, or the floor that the
# report names if that is more; plain, strict and guided, with iterations that begin anywhere. What they print must be the same to the byte.
set -u
command=$1 libraries=$2 program=$3 per_thread=$4
. "${0%/*}/../within.bash"

measure "$program"
[ "$peak" -gt 2500000 ] || fail "it allocates $peak bytes"
grep -q '^100 done$' "$work/operands" || fail "hardly anything was compared"
for percent in 75 55; do
    run $((peak * percent / 100)) "$program"
    run $((peak * percent / 100)) --strict "$program"
    run $((peak * percent / 100)) --mode guided --iteration-kernel . "$program"
    [ "$(reported 'iterations: ')" -gt 20 ] || fail "no iterations"
    run $((peak * percent / 100)) --mode guided --recompute --iteration-kernel . "$program"
done
run $((peak * 55 / 100)) --mode guided --recompute --strict "$program"
grep -Eq '^launches: 198 of closed kernels, 0 of open ones$' "$work/report" || fail "launches"
for passed in 'cuMemAllocManaged: 1 calls, 65536' 'cuMemHostRegister_v2: 1 calls, 65536' \
    'cuMemAllocHost_v2: 4 calls, 262144'; do
    grep -q "^passed through: $passed bytes in all$" "$work/report" || fail "not reported: $passed"
done
# The floor is enough, and a third less is not.
floor=$(reported 'floor: ')
[ "$floor" -lt $((peak / 4)) ] || fail "a floor of $floor bytes"
run "$floor" "$program"
if "$command" run --budget $((floor * 2 / 3)) "$program" >"$work/output" 2>"$work/messages"; then
    fail "it runs below the floor of $floor bytes"
fi
grep -q 'does not fit the budget' "$work/messages" || fail "below the floor"

"$per_thread" >"$work/other" || fail "$per_thread alone: exit code $?"
cmp "$work/alone" "$work/other" || fail "the default streams make a difference"
run $((peak * 75 / 100)) --strict "$per_thread"
run $((peak * 55 / 100)) "$per_thread"

# An open kernel needs all memory: the floor is all of it. With less the launch fails, and a line says why.
measure "$program" table
if "$command" run --report "$work/report" --budget $((peak * 75 / 100)) "$program" table \
    >"$work/output" 2>"$work/messages"; then
    fail "an open kernel runs within 75 % of all memory"
fi
grep -q 'bytes are needed for the kernel .*through_table.*, which is open: an address that no parameter' \
    "$work/messages" || fail "no line about the open kernel"
floor=$(reported 'floor: ')
[ "$floor" -ge "$peak" ] || fail "a floor of $floor bytes where all $peak are needed"
run "$floor" "$program" table
run "$floor" --strict "$program" table
grep -q '^launches: 2 of closed kernels, 2 of open ones$' "$work/report" || fail "launches"

# Four threads with three buffers each, with both kinds of default stream.
measure "$program" threads
for percent in 75 55 30; do
    run $((peak * percent / 100)) "$program" threads
    run $((peak * percent / 100)) "$per_thread" threads
done
run $((peak * 55 / 100)) --strict "$program" threads
grep -Eq '^launches: 64 of closed kernels, 0 of open ones$' "$work/report" || fail "launches of threads"

# The driver's own reset frees memory, and ours does.
PTX_DRIVER_MEMORY=128KiB "$program" reset >"$work/output" || fail "reset: no memory"
measure "$program" reset
run $((peak * 75 / 100)) "$program" reset
run $((peak * 55 / 100)) --strict "$program" reset
[ "$peak" -le 140000 ] || fail "it allocates $peak bytes"
# Variables do not get their first values: kernels that use them are refused.
[ "$("$program" reset_variables)" = $'reset: 1\nreset: 1' ] || fail "variables after a reset"
if "$command" run "$program" reset_variables >"$work/output" 2>"$work/messages"; then
    fail "variables after a reset are used"
fi
grep -q 'refused: the kernel .*copy_shifted.* may use variables of its module' "$work/messages" ||
    fail "no line about variables"
echo "the same output"
