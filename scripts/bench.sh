#!/bin/bash
# scripts/bench.sh BIN: runs all benches in BIN, one after the other, so that they do not disturb each
# other. The one for several processes runs on two ranks.
set -u
found=0
for bench in "$1"/bench_*; do
    [ -x "$bench" ] || continue
    found=1
    echo "== ${bench##*/}"
    if [ "${bench##*/}" = bench_parallel ]; then
        "$(dirname "$0")/ranks.sh" 2 "$bench" || exit 1
    else
        "$bench" || exit 1
    fi
done
[ "$found" -eq 1 ] || { echo "no bench in $1" >&2; exit 1; }
