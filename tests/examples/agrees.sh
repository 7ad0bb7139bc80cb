#!/bin/sh
# Checks the library's central guarantee at a single budget, where more would take too long: losses
# and weights of a passive and of a guided run equal those of a run without a limit, bit for bit.
#
# usage: agrees.sh WORK-FOLDER BUDGET PROGRAM [OPTION...]
set -u
. "$(dirname "$0")/runs.sh"

run off "$@" --mode off
has_only_numbers "$work/off.log" || fail "the run without a limit has losses that are no numbers"
for mode in passive guided; do
    wait=
    [ $mode = guided ] && wait=--wait-for-plan
    run $mode "$@" --mode $mode --budget "$budget" $wait
    cmp "$work/off.log" "$work/$mode.log" || fail "$mode: different losses"
    cmp "$work/off.weights" "$work/$mode.weights" || fail "$mode: different weights"
    grep -q '"evict_count":[1-9]' "$work/$mode.report" || fail "$mode: nothing was evicted"
done
grep -q '"label":"train".*"mode":"guided"\|"mode":"guided".*"label":"train"' "$work/guided.report" ||
    fail "no training iteration was guided"
echo "the same losses and weights at $budget, passive and guided"
