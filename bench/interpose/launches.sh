#!/bin/bash
# launches.sh [--json] [BUILD]: what a launch costs the calling thread under `capuchin run`, in passive and in guided
# mode, next to the call of a driver that does nothing; in nanoseconds of processor time, the median of 41 iterations
# of 400 launches, and the fastest one. Everything fits, so nothing is moved. Without a GPU: the library manages the
# memory of its sim device.
set -u
json=
[ "${1:-}" != --json ] || { json=1; shift; }
build=${1:-build}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$build/bench/interpose/driver CAPUCHIN_DEVICE=sim

fail() {
    echo "$*" >&2
    cat "$work/report" "$work/messages" >&2 2>/dev/null
    exit 1
}

"$build/bin/bench_launches" >"$work/driver" || fail "alone: exit code $?"
for mode in passive guided; do
    "$build/bin/capuchin" run --mode $mode --report "$work/report" "$build/bin/bench_launches" >"$work/$mode" \
        2>"$work/messages" || fail "$mode: exit code $?"
    # What is measured is a launch that was seen before: its slice runs once per kernel.
    grep -q '^launches: [1-9][0-9]* of closed kernels, 0 of open ones$' "$work/report" || fail "$mode: open kernels"
    grep -q '^slices: launched 9 times, ' "$work/report" || fail "$mode: slices"
    grep -q 'kernel take30: .* at most 30720 bytes of operands, 0 launches failed$' "$work/report" ||
        fail "$mode: operands"
done
paste -d ' ' "$work/driver" "$work/passive" "$work/guided" | awk -v json="$json" '
    BEGIN { if (!json) print "pointers  allocations  driver ns  passive ns (least)  guided ns (least)" }
    json {
        printf "{\"pointers\":%d,\"allocations\":%d,\"driver_ns\":%d,\"passive_ns\":%d,\"passive_least_ns\":%d," \
               "\"guided_ns\":%d,\"guided_least_ns\":%d}\n", $1, $2, $3, $7, $8, $11, $12
        next
    }
    { printf "%8d  %11d  %9d  %10d (%5d)  %9d (%5d)\n", $1, $2, $3, $7, $8, $11, $12 }'
