#!/bin/bash
# guided.sh COMMAND LIBRARIES PROGRAM STEPS PERCENT...: runs that many steps of an unmodified CUDA program over the
# driver in LIBRARIES, alone and by `COMMAND run --mode guided` within each percentage of the memory that it allocates
# alone. What it prints must be the same to the byte; iterations must be found and planned; and those that follow a
# plan with places must not map memory. Within the last one also with iterations that begin in the wrong places.
set -u
command=$1 libraries=$2 program=$3 steps=$4
shift 4
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$libraries PTX_DRIVER_FOREIGN=1 CAPUCHIN_DEVICE=host CAPUCHIN_WAIT_FOR_PLAN=1

fail() {
    echo "$*"
    cat "$work/messages" "$work/report" 2>/dev/null
    cut -c1-1500 "$work/iterations" 2>/dev/null
    exit 1
}

# reported TEXT: the number that follows it in the report.
reported() {
    sed -n "s/^$1\([0-9]*\).*/\1/p" "$work/report"
}

# run STEPS OPTION...: one run under the command; its output must be that of the run alone. All that its launches touch is
# compared with their operands if the run is short, or if SHIM_COMPARE is set.
run() {
    local count=$1
    shift
    rm -f "$work/operands"
    if [ "$count" -eq 2 ] || [ -n "${SHIM_COMPARE:-}" ]; then
        export PTX_DRIVER_OPERANDS=$work/operands
        set -- --operands "$work/operands" "$@"
    else
        unset PTX_DRIVER_OPERANDS
    fi
    "$command" run --report "$work/report" --iterations "$work/iterations" "$@" -- "$program" "$count" \
        >"$work/output" 2>"$work/messages" || fail "run $*: exit code $?"
    cmp "$work/alone.$count" "$work/output" || fail "run $*: the output differs"
    [ ! -s "$work/messages" ] || fail "run $*: messages"
}

for count in 2 "$steps"; do
    "$program" "$count" >"$work/alone.$count" || fail "alone: exit code $?"
done
run 2 --mode off
peak=$(reported 'allocations at the end: [0-9]* bytes, at most ')
for percent in "$@"; do
    budget=$((peak * percent / 100))
    run "$steps" --mode guided --budget "$budget"
    [ "$(reported 'peak: ')" -le "$budget" ] || fail "more than $budget bytes were held"
    grep -Eq '^period: [0-9]+ calls, begun by copy from the host \(.*\), found 1 times, 0 pauses$' "$work/report" ||
        fail "no period"
    # Two steps to find them; then each is one.
    [ "$(reported 'iterations: ')" -eq $((steps - 2)) ] || fail "iterations are not steps"
    [ "$(reported 'iterations that left their plan: ')" -eq 0 ] || fail "iterations left their plan"
    guided=$(grep -c '"mode":"guided",.*"diverged":0,' "$work/iterations")
    # Up to three have no plan, while allocations are still cut; the lines of the last ones may be missing.
    [ "$guided" -ge $((steps - 6)) ] || fail "only $guided iterations were guided"
    placed=$(grep '"mode":"guided",.*"diverged":0,.*"unplaced":0,' "$work/iterations")
    [ -n "$placed" ] || fail "no plan has places"
    if grep -v '"map_count":0,.*"unmap_count":0,' <<<"$placed" | grep -q .; then
        fail "a guided iteration maps memory"
    fi
    # By their numbers, so that they are the same in each run.
    grep -q '"tensor":"allocation [1-9][0-9]*[+"]' "$work/iterations" || fail "no allocation has a name"
    ! grep -q '"tensor":"0x' "$work/iterations" || fail "tensors without names"
    grep '"peak_bytes"' "$work/iterations" | sed 's/.*"peak_bytes":\([0-9]*\),.*/\1/' |
        while read -r held; do [ "$held" -le "$budget" ] || exit 1; done || fail "an iteration held more than $budget"
done
# Launches may be repeated. Memory that lasts is not recomputed, so here none is.
for percent in "$@"; do
    run "$steps" --mode guided --recompute --budget $((peak * percent / 100))
    grep -Eq '^repeatable launches: [1-9][0-9]*, repeated 0 times$' "$work/report" || fail "nothing is repeatable"
done
# Kernels of several places in a step: iterations of all lengths, of which most leave their plan.
run 2 --mode guided --budget "$budget" --iteration-kernel 'add|relu|norm'
[ "$(reported 'iterations: ')" -gt 6 ] || fail "no wrong iterations"
[ "$(reported 'iterations that left their plan: ')" -ge 1 ] || fail "wrong iterations follow their plan"
echo "the same output within $* % of $peak bytes"
