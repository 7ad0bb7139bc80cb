#!/bin/bash
# indices.sh COMMAND LIBRARIES PROGRAM: runs the traps with indices and variables over the driver in LIBRARIES: alone,
# and by `COMMAND run` within shares of what they allocate and within the floor, plain and strict. What they print must
# be the same to the byte.
set -u
command=$1 libraries=$2 program=$3
. "${0%/*}/../within.bash"

# sliced KERNEL PATTERN: what the report says of a kernel's slice.
sliced() {
    grep -Eq "^slice of [^:]*$1[^:]*: $2" "$work/report" || fail "the slice of $1 is not: $2"
}

measure "$program"
[ "$peak" -gt 600000 ] || fail "it allocates $peak bytes"
for percent in 75 55; do
    run $((peak * percent / 100)) "$program"
    run $((peak * percent / 100)) --strict "$program"
done
grep -Eq '^launches: [1-9][0-9]* of closed kernels, 0 of open ones$' "$work/report" || fail "launches"
# A slice runs again where a variable has changed in one of four ways, and not where it has not.
sliced copy_window 'launched 48 times, not needed for 48 launches$'
# A launch that may change the variables it reads has whole allocations.
sliced store_and_read 'launched 0 times, not needed for 0 launches, without results for 8'
# Indices are read before each launch, unless the launch may store to them.
sliced gather 'launched 1 times, not needed for 7 launches, indices read for 8, 458752 bytes written as a whole$'
sliced sum_segments 'launched 1 times, not needed for 5 launches, indices read for 6$'
sliced scatter_and_step 'launched 1 times, not needed for 17 launches, indices read for 12$'
# A ticket does not widen the array of the parts: the input, a part per block, and a sum.
grep -Eq '^kernel .*sum_by_last_block.*: closed, 8 launches, at most 66052 bytes of operands,' "$work/report" ||
    fail "the operands of a ticket"
floor=$(reported 'floor: ')
run "$floor" "$program"
run "$floor" --strict "$program"
for percent in 75 55; do
    run $((peak * percent / 100)) --mode guided --recompute --iteration-kernel . "$program"
    run $((peak * percent / 100)) --mode guided --recompute --strict "$program"
done
echo "the same output"
