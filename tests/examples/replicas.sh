#!/bin/sh
# Checks train_gpt --replicas: with one replica the bits are those of a run without the option, and
# with more, the losses agree to rounding, since the gradient is the same sum in another order.
#
# usage: replicas.sh WORK-FOLDER TRAIN_GPT [OPTION...]
set -u
. "$(dirname "$0")/../support/numbers.sh"
work=$1
shift
rm -rf "$work" && mkdir -p "$work" || exit 1

fail() {
    echo "replicas.sh: $*"
    exit 1
}

# run NAME OPTION...: runs the program and keeps its losses and weights.
run() {
    name=$1
    shift
    "$@" --mode off --loss-log "$work/$name.log" --save "$work/$name.weights" >"$work/$name.out" 2>&1 ||
        fail "$name failed: $(cat "$work/$name.out")"
    has_only_numbers "$work/$name.log" || fail "$name has losses that are no numbers"
}

run plain "$@"
run one "$@" --replicas 1
cmp "$work/plain.log" "$work/one.log" || fail "one replica: different losses"
cmp "$work/plain.weights" "$work/one.weights" || fail "one replica: different weights"

# agree WHAT: whether the numbers of standard input, two per line, differ by no more than rounding.
agree() {
    awk -v what="$1" '{ d = $1 - $2; if (d < 0) d = -d; n++
            if (d > 1e-4 * $1) { print what, "differ: " $1, $2; bad = 1 } }
        END { exit bad || n < 2 }' || fail "$count replicas: $1 differ by more than rounding explains"
}

# losses NAME: those of all steps; validation NAME: those of all passes.
losses() {
    while read -r step loss; do
        printf '%.9f\n' "$loss" # from hexadecimal
    done <"$work/$1.log"
}
validation() {
    sed -n 's/^validation loss //p' "$work/$1.out"
}

for count in 2 4; do
    run $count "$@" --replicas $count
    cmp -s "$work/plain.weights" "$work/$count.weights" &&
        fail "$count replicas: the sums are not in another order"
    for what in losses validation; do
        $what plain >"$work/a"
        $what $count >"$work/b"
        paste "$work/a" "$work/b" | agree $what
    done
done
"$@" --batch 8 --replicas 3 >"$work/out" 2>&1
[ $? -eq 2 ] || fail "a batch that cannot be divided was accepted"
grep -q -e '--batch 8: not a multiple of --replicas 3' "$work/out" || fail "$(cat "$work/out")"
echo "the same losses with 1, 2 and 4 replicas"
