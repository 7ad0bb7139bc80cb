#!/bin/sh
# bf16 is another run than fp32, and learns like it: its losses are other ones, the last near. It
# holds less, and what it saves is as long, since those are the fp32 masters: they differ from fp32's in
# more than a bf16 number has.
#
# usage: dtypes.sh WORK-FOLDER PERCENT PROGRAM [OPTION...]: so near is the last loss
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
    grep -q "$dtype: [0-9]* parameters" "$work/$dtype.out" || fail "$dtype is not named with the parameters"
    grep -o '"live_peak_bytes":[0-9]*' "$work/$dtype.report" | sed 's/.*://' | sort -n |
        tail -n 1 >"$work/$dtype.peak"
done
cmp -s "$work/fp32.log" "$work/bf16.log" && fail "bf16 gave the losses of fp32"
[ "$(wc -c <"$work/fp32.weights")" -eq "$(wc -c <"$work/bf16.weights")" ] || fail "other weights are saved"
[ "$(cat "$work/bf16.peak")" -lt "$(cat "$work/fp32.peak")" ] || fail "bf16 holds no less than fp32"

# Of numbers that were bf16 once, half of the bytes would be zeros.
zeros=$(od -An -v -t x1 -w1 -j 4096 -N 40000 "$work/bf16.weights" | grep -c ' 00')
[ "$zeros" -lt 10000 ] || fail "what is saved has been rounded to bf16"

# The log's numbers are hexadecimal floats, which printf reads.
first=$(printf '%.6f' "$(tail -n 1 "$work/fp32.log" | cut -d ' ' -f 2)")
second=$(printf '%.6f' "$(tail -n 1 "$work/bf16.log" | cut -d ' ' -f 2)")
awk -v a="$first" -v b="$second" -v percent="$percent" \
    'BEGIN { off = percent / 100; exit !(b > (1 - off) * a && b < (1 + off) * a) }' ||
    fail "the last loss is $second, in fp32 $first"
echo "the last loss is $second, in fp32 $first"
