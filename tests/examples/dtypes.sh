#!/bin/sh
# Compares bf16 with fp32. The losses differ, but the last one is close. bf16 needs less memory. The
# saved weights have the same size, since they are the fp32 masters, and they have more digits than
# bf16 numbers.
#
# usage: dtypes.sh WORK-FOLDER PERCENT PROGRAM [OPTION...]
# PERCENT is the largest allowed difference of the last loss.
set -u
work=$1
percent=$2
shift 2
rm -rf "$work" && mkdir -p "$work" || exit 1

fail() {
    echo "dtypes.sh: $*"
    exit 1
}

for dtype in fp32 bf16; do
    "$@" --dtype $dtype --mode off --loss-log "$work/$dtype.log" --save "$work/$dtype.weights" \
        --report "$work/$dtype.report" >"$work/$dtype.out" 2>&1 || fail "$(cat "$work/$dtype.out")"
    grep -q "$dtype: [0-9]* parameters" "$work/$dtype.out" || fail "the output does not name $dtype with the parameters"
    grep -o '"live_peak_bytes":[0-9]*' "$work/$dtype.report" | sed 's/.*://' | sort -n |
        tail -n 1 >"$work/$dtype.peak"
done
cmp -s "$work/fp32.log" "$work/bf16.log" && fail "bf16 gave the losses of fp32"
[ "$(wc -c <"$work/fp32.weights")" -eq "$(wc -c <"$work/bf16.weights")" ] || fail "the saved weights differ in size"
[ "$(cat "$work/bf16.peak")" -lt "$(cat "$work/fp32.peak")" ] || fail "bf16 does not need less memory than fp32"

# If the numbers had been rounded to bf16, half of the bytes would be zero.
zeros=$(od -An -v -t x1 -w1 -j 4096 -N 40000 "$work/bf16.weights" | grep -c ' 00')
[ "$zeros" -lt 10000 ] || fail "the saved weights have been rounded to bf16"

# The log has hexadecimal floats, which printf reads.
first=$(printf '%.6f' "$(tail -n 1 "$work/fp32.log" | cut -d ' ' -f 2)")
second=$(printf '%.6f' "$(tail -n 1 "$work/bf16.log" | cut -d ' ' -f 2)")
awk -v a="$first" -v b="$second" -v percent="$percent" \
    'BEGIN { off = percent / 100; exit !(b > (1 - off) * a && b < (1 + off) * a) }' ||
    fail "the last loss is $second, in fp32 $first"
echo "the last loss is $second, in fp32 $first"
