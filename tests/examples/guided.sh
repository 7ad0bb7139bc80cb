#!/bin/sh
# Checks the library's central guarantee in guided mode: losses and weights equal those of a run
# without a limit, bit for bit, with many planners, at 90, 70, 50 and 40 %, 2 % above the smallest feasible
# budget and at that, in strict mode and not. A sample (support/effort.sh) has one run of each kind. Also checks that plans are carried out: with 50 % or more and 2 % above the
# smallest budget, MOST of the training iterations are guided.
#
# usage: guided.sh WORK-FOLDER FREE MOST PROGRAM [OPTION...]
# FREE is the budget of the run without a limit, as for budgets.sh; MOST is "most" or "some".
set -u
. "$(dirname "$0")/../support/effort.sh"
. "$(dirname "$0")/../support/numbers.sh"
work=$1
free=$2
most=$3
shift 3
rm -rf "$work" && mkdir -p "$work" || exit 1

fail() {
    echo "guided.sh: $*"
    exit 1
}

"$@" --mode off --budget "$free" --loss-log "$work/off.log" --save "$work/off.weights" >"$work/off.out" 2>&1 ||
    fail "the run without a limit failed: $(cat "$work/off.out")"
has_only_numbers "$work/off.log" || fail "the run without a limit has losses that are no numbers"

# run NAME OPTION...: runs in guided mode and compares with the run without a limit.
run() {
    name=$1
    shift
    "$@" --mode guided --loss-log "$work/$name.log" --save "$work/$name.weights" \
        --report "$work/$name.report" >"$work/$name.out" 2>&1 || fail "$name failed: $(cat "$work/$name.out")"
    cmp "$work/off.log" "$work/$name.log" || fail "$name: different losses"
    cmp "$work/off.weights" "$work/$name.weights" || fail "$name: different weights"
    grep -q '"evict_count":[1-9]' "$work/$name.report" || fail "$name: nothing was evicted"
}

# expect COUNTER: checks that the counter is not 0 in some iteration of the last run.
expect() {
    grep -q "\"$1\":[1-9]" "$work/$name.report" || fail "$name: $1 is 0 in all iterations"
}

# expect_guided: checks that most, or some, training iterations of the last run were guided.
expect_guided() {
    all=$(grep -c '"label":"train' "$work/$name.report")
    guided=$(grep '"label":"train' "$work/$name.report" | grep -c '"mode":"guided"')
    if [ "$most" = most ]; then
        [ $((guided * 2)) -gt "$all" ] || fail "$name: $guided of $all training iterations were guided"
    fi
    [ "$guided" -gt 0 ] || fail "$name: no training iteration was guided"
    expect predicted_ns
}

percents=70
planners=swap
strict_planners=manual
if runs_all_cases; then
    percents="90 70 50"
    planners="recompute swap lru manual"
    strict_planners="hybrid recompute manual"
fi
for percent in $percents; do
    run "hybrid-$percent" "$@" --wait-for-plan --budget $percent%
    expect_guided
done
for planner in $planners; do
    run "$planner" "$@" --wait-for-plan --planner $planner --effort quick --budget 60%
    expect_guided
done
run replays "$@" --wait-for-plan --planner recompute --effort quick --budget 80%
expect replay_count
for planner in $strict_planners; do
    run "$planner-strict" "$@" --wait-for-plan --planner $planner --budget 50% --strict
    expect_guided
done
if runs_all_cases; then
    run hybrid-40 "$@" --wait-for-plan --budget 40%
    run recompute-40-strict "$@" --wait-for-plan --planner recompute --budget 40% --strict
fi

# Without --wait-for-plan, a plan becomes active whenever it is ready.
run meanwhile "$@" --budget 50%

# Near the floor there may be no placement. Then plans without places are followed.
"$@" --mode guided --budget 16KiB >"$work/below.out" 2>&1
floor=$(sed -n 's/.*floor of [^(]*(\([0-9]*\) bytes).*/\1/p' "$work/below.out")
[ -n "$floor" ] || fail "a tiny budget was not refused with the floor: $(cat "$work/below.out")"
run near-the-floor "$@" --wait-for-plan --budget $((floor * 102 / 100))
expect_guided
if runs_all_cases; then
    run at-the-floor "$@" --wait-for-plan --budget "$floor"
fi
run at-the-floor-strict "$@" --wait-for-plan --planner recompute --budget "$floor" --strict
echo "the same losses and weights with every planner, down to the floor of $floor bytes"
