#!/bin/sh
# Checks that training whose steps are captured as CUDA graphs has the losses and weights of a run
# without a limit, bit for bit. The first steps under a plan are timed and not captured; if times
# vary, there are more of them, and more steps are tried.
#
# usage: graphs.sh WORK-FOLDER BUDGET PROGRAM [OPTION...]
set -u
. "$(dirname "$0")/runs.sh"

# Whether a step was captured that brings something back.
has_graph() {
    grep '"graph":1' "$work/graph.report" | grep -q '"prefetch_count":[1-9]\|"replay_count":[1-9]'
}

for steps in 26 80 200; do
    run off "$@" --steps $steps --mode off
    has_only_numbers "$work/off.log" || fail "the run without a limit has losses that are no numbers"
    run graph "$@" --steps $steps --mode guided --budget "$budget" --wait-for-plan --graph
    cmp "$work/off.log" "$work/graph.log" || fail "different losses"
    cmp "$work/off.weights" "$work/graph.weights" || fail "different weights"
    has_graph && break
done
has_graph || fail "no graph brought anything back: $(cat "$work/graph.out")"
"$@" --mode off --graph >"$work/refused.out" 2>&1 && fail "--graph in mode off was accepted"
grep -q 'not guided' "$work/refused.out" || fail "no reason in: $(cat "$work/refused.out")"
echo "the same losses and weights at $budget with graphs"
