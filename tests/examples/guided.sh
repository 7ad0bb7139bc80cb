#!/bin/sh
# The library's law in mode guided: losses and weights are those of a run without a limit, to the bit,
# with many planners, at 90, 70, 50 and 40 % and at the smallest feasible budget, strict and not. And
# the plans are carried out: MOST of the training iterations from 50 % on are guided.
#
# usage: guided.sh WORK-FOLDER FREE MOST PROGRAM [OPTION...]: FREE is the budget of the run without a
# limit, as for budgets.sh; MOST is "most" or "some"
set -u
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

# run NAME OPTION...: a guided run, compared with the one without a limit.
run() {
    name=$1
    shift
    "$@" --mode guided --loss-log "$work/$name.log" --save "$work/$name.weights" \
        --report "$work/$name.report" >"$work/$name.out" 2>&1 || fail "$name failed: $(cat "$work/$name.out")"
    cmp "$work/off.log" "$work/$name.log" || fail "$name: other losses"
    cmp "$work/off.weights" "$work/$name.weights" || fail "$name: other weights"
    grep -q '"evict_count":[1-9]' "$work/$name.report" || fail "$name: nothing was evicted"
}

# expect COUNTER: in some iteration of the last run it is not 0.
expect() {
    grep -q "\"$1\":[1-9]" "$work/$name.report" || fail "$name: $1 is 0 in all iterations"
}

# expect_guided: the last run's training iterations were.
expect_guided() {
    all=$(grep -c '"label":"train' "$work/$name.report")
    guided=$(grep '"label":"train' "$work/$name.report" | grep -c '"mode":"guided"')
    if [ "$most" = most ]; then
        [ $((guided * 2)) -gt "$all" ] || fail "$name: $guided of $all training iterations were guided"
    fi
    [ "$guided" -gt 0 ] || fail "$name: no training iteration was guided"
    expect predicted_ns
}

for percent in 90 70 50; do
    run "hybrid-$percent" "$@" --wait-for-plan --budget $percent%
    expect_guided
done
for planner in recompute swap capuchin lru checkpoint manual; do
    run "$planner" "$@" --wait-for-plan --planner $planner --effort quick --budget 60%
    expect_guided
done
run replays "$@" --wait-for-plan --planner recompute --effort quick --budget 80%
expect replay_count
for planner in hybrid recompute manual; do
    run "$planner-strict" "$@" --wait-for-plan --planner $planner --budget 50% --strict
    expect_guided
done
run hybrid-40 "$@" --wait-for-plan --budget 40%
run recompute-40-strict "$@" --wait-for-plan --planner recompute --budget 40% --strict

# Nobody waits: plans come into force whenever they are ready.
run meanwhile "$@" --budget 50%

# Near the floor there may be no plan whose pages fit: training goes on without one.
"$@" --mode guided --budget 16KiB >"$work/below.out" 2>&1
floor=$(sed -n 's/.*floor of [^(]*(\([0-9]*\) bytes).*/\1/p' "$work/below.out")
[ -n "$floor" ] || fail "a tiny budget was not refused with the floor: $(cat "$work/below.out")"
run at-the-floor "$@" --wait-for-plan --budget "$floor"
run at-the-floor-strict "$@" --wait-for-plan --planner recompute --budget "$floor" --strict
echo "the same losses and weights, whoever plans, down to the floor of $floor bytes"
