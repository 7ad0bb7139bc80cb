#!/bin/bash
# graphs.sh COMMAND LIBRARIES PROGRAM PER_THREAD: runs the traps with graphs, built with both kinds of default stream,
# over the driver in LIBRARIES: alone, and by `COMMAND run` within 75 and 55 % of what they allocate, and within the
# floor; plain, strict and guided. What they print must be the same to the byte.
set -u
command=$1 libraries=$2 program=$3 per_thread=$4
. "${0%/*}/../within.bash"

# fails BUDGET PATTERN WORD...: one run that fails, and a line that says why.
fails() {
    local budget=$1 pattern=$2
    shift 2
    if "$command" run --report "$work/report" --budget "$budget" "$@" >"$work/output" 2>"$work/messages"; then
        fail "$* runs within $budget"
    fi
    grep -q "$pattern" "$work/messages" || fail "$*: no line with: $pattern"
}

measure "$program"
[ "$peak" -gt 2000000 ] || fail "it allocates $peak bytes"
for percent in 75 55; do
    run $((peak * percent / 100)) "$program"
    run $((peak * percent / 100)) --strict "$program"
    run $((peak * percent / 100)) --mode guided --iteration-kernel . "$program"
    [ "$(reported 'iterations: ')" -gt 5 ] || fail "no iterations"
    run $((peak * percent / 100)) --mode guided --recompute --iteration-kernel . "$program"
done
# Kernels of graphs are counted as launches, and are as closed as outside.
grep -Eq '^launches: 264 of closed kernels, 0 of open ones$' "$work/report" || fail "launches"
[ "$(grep -c '^graph [0-9]*: ' "$work/report")" -eq 20 ] || fail "graphs"
floor=$(reported 'floor: ')
[ "$floor" -lt $((peak / 4)) ] || fail "a floor of $floor bytes"
run "$floor" "$program"
"$per_thread" >"$work/other" || fail "$per_thread alone: exit code $?"
cmp "$work/alone" "$work/other" || fail "the default streams make a difference"
run $((peak * 55 / 100)) --strict "$per_thread"
run $((peak * 75 / 100)) "$per_thread"

# Of two graphs, one fits. If none does, a line names it.
measure "$program" in_turn
run $((peak * 55 / 100)) "$program" in_turn
run $((peak * 55 / 100)) --strict "$program" in_turn
floor=$(reported 'floor: ')
[ "$floor" -le $((peak * 55 / 100)) ] || fail "a floor of $floor bytes"
fails $((peak * 40 / 100)) 'bytes are needed at once for graph 1, which has 8 nodes' "$program" in_turn

# Graphs of which nothing is known need all memory.
measure "$program" in_graph
run "$peak" "$program" in_graph
fails $((peak * 75 / 100)) 'for graph 1, which is open: a node that is a graph' "$program" in_graph
measure "$program" of_table
run "$(reported 'floor: ')" "$program" of_table
fails $((peak * 75 / 100)) 'for graph 1, which is open: the kernel .*through_table.*: an address' "$program" of_table

# What the driver refuses during a capture is refused, with the same errors.
measure "$program" errors
run "$peak" "$program" errors
echo "the same output"
