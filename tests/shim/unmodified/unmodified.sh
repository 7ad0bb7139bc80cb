#!/bin/bash
# unmodified.sh COMMAND LIBRARIES PROGRAM PERCENT...: runs two steps of an unmodified CUDA program over the driver in
# LIBRARIES, alone and by `COMMAND run` within each percentage of the memory that it allocates alone.
# Within each one also strict, and for the first one on a device that has no more memory than that, on
# which the program alone fails. What it prints must be the same to the byte.
set -u
command=$1 libraries=$2 program=$3
shift 3
. "${0%/*}/../within.bash"

# run_closed OPTION...: one run under the command, of closed kernels only.
run_closed() {
    under --report "$work/report" "$@" -- "$program" 2 >"$work/output" 2>"$work/messages" ||
        fail "$*: exit code $?"
    cmp "$work/alone" "$work/output" || fail "$*: the output differs"
    [ ! -s "$work/messages" ] || fail "$*: messages"
    grep -Eq '^launches: [1-9][0-9]* of closed kernels, 0 of open ones$' "$work/report" ||
        fail "$*: kernels or slices"
    ! grep -Eq '^slice of .*: none|without results' "$work/report" || fail "$*: kernels or slices"
}

"$program" 2 >"$work/alone" || fail "alone: exit code $?"
run_closed --mode off
grep -q '^100 done$' "$work/operands" || fail "hardly anything was compared"
# Its allocations, and cuBLAS's workspace if it uses that, which come out of the same budget.
others=$(reported 'taken by others: .* at most ')
peak=$(($(reported 'allocations at the end: .* at most ') + others))
[ "$peak" -gt 1000000 ] || fail "it allocates $peak bytes"
device=
for percent in "$@"; do
    budget=$((peak * percent / 100))
    run_closed --budget "$budget"
    held=$(reported 'peak: ')
    [ "$held" -le $((budget - others)) ] || fail "within $budget bytes, it held $held, and others $others"
    [ "$held" -gt $((budget / 2)) ] || fail "within $budget bytes, it held only $held"
    run_closed --budget "$budget" --strict
    if [ -z "$device" ]; then
        device=$budget
        if PTX_DRIVER_MEMORY=$device "$program" 2 >"$work/small" 2>"$work/messages"; then
            fail "alone, it runs in $device bytes"
        fi
        PTX_DRIVER_MEMORY=$device run_closed --budget "$budget"
    fi
done
echo "the same output within $* % of $peak bytes"
