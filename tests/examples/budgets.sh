#!/bin/sh
# Checks the library's central guarantee on a training example: losses and weights of a run with a
# budget equal those of a run without one, bit for bit, at 90, 70, 50 and 40 % and at the smallest
# feasible budget (a sample, see support/effort.sh: at 50 % and at the smallest). Below that the example fails and names the floor and the op that sets it.
#
# usage: budgets.sh WORK-FOLDER FREE PROGRAM [OPTION...]
# FREE is the budget of the run without a limit: "none", or more than it needs. With pages smaller
# than the default, a budget of all memory would have too many pages.
set -u
. "$(dirname "$0")/../support/effort.sh"
. "$(dirname "$0")/../support/numbers.sh"
work=$1
free=$2
shift 2
rm -rf "$work" && mkdir -p "$work" || exit 1

fail() {
    echo "budgets.sh: $*"
    exit 1
}

"$@" --mode off --budget "$free" --loss-log "$work/off.log" --save "$work/off.weights" >"$work/off.out" 2>&1 ||
    fail "the run without a limit failed: $(cat "$work/off.out")"
has_only_numbers "$work/off.log" || fail "the run without a limit has losses that are no numbers"

# run NAME OPTION...: runs with a budget and compares with the run without a limit.
run() {
    name=$1
    shift
    "$@" --loss-log "$work/$name.log" --save "$work/$name.weights" --report "$work/$name.report" \
        >"$work/$name.out" 2>&1 || fail "$name failed: $(cat "$work/$name.out")"
    cmp "$work/off.log" "$work/$name.log" || fail "$name: different losses"
    cmp "$work/off.weights" "$work/$name.weights" || fail "$name: different weights"
    grep -q '"evict_count":[1-9]' "$work/$name.report" || fail "$name: nothing was evicted"
}

percents=50
runs_all_cases && percents="90 70 50 40"
for percent in $percents; do
    run "at-$percent" "$@" --mode passive --budget $percent%
done
runs_all_cases && run strict "$@" --mode passive --budget 50% --strict

"$@" --mode passive --budget 16KiB >"$work/below.out" 2>&1
floor=$(sed -n 's/.*floor of [^(]*(\([0-9]*\) bytes).*/\1/p' "$work/below.out")
[ -n "$floor" ] || fail "a tiny budget was not refused with the floor: $(cat "$work/below.out")"
runs_all_cases && run "at-the-floor" "$@" --mode passive --budget "$floor"
run "at-the-floor-strict" "$@" --mode passive --budget "$floor" --strict

"$@" --mode passive --budget $((floor - 1)) >"$work/below.out" 2>&1
[ $? -eq 1 ] || fail "a budget below the floor was not refused"
grep -q "floor of .*$floor bytes.* set by the op [a-z]" "$work/below.out" ||
    fail "the error does not name the floor and its op: $(cat "$work/below.out")"
echo "the same losses and weights at $percents % and at the floor of $floor bytes"
