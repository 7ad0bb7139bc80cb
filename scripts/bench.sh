#!/bin/bash
# scripts/bench.sh BIN: runs all benches in BIN, one after the other, so that they do not disturb each
# other.
set -u
found=0
for bench in "$1"/bench_*; do
    [ -x "$bench" ] || continue
    found=1
    echo "== ${bench##*/}"
    "$bench" || exit 1
done
[ "$found" -eq 1 ] || { echo "no bench in $1" >&2; exit 1; }
