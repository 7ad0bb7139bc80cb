#!/bin/bash
# program.sh PROGRAM REFERENCE LIBRARIES BYTES: runs an unmodified CUDA program on the test driver. Its losses
# are those of the reference, to 2e-5; a second run prints the same bytes; it needs no more than BYTES
# of device memory; and with a little less it ends with the error that CUDA programs print.
set -u
program=$1 reference=$2 bytes=$4
export LD_LIBRARY_PATH=$3
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*"
    exit 1
}

PTX_DRIVER_MEMORY=$bytes "$program" >"$work/first" || fail "it fails in $bytes bytes"
"$program" >"$work/second" || fail "it fails in ample memory"
cmp "$work/first" "$work/second" || fail "two runs differ"
"$reference" >"$work/reference" || fail "the reference fails"
steps=$(grep -c '^step [0-9]*: loss ' "$work/reference")
[ "$steps" -gt 3 ] || fail "the reference has $steps steps"
grep -q '^weights [0-9a-f]\{16\}$' "$work/first" || fail "no checksum: $(cat "$work/first")"
grep '^step ' "$work/first" | paste - "$work/reference" | awk -v steps="$steps" '
    { difference = $4 - $8; if (difference < 0) difference = -difference }
    $2 != $6 || !(difference <= 2e-5) { print "differs: " $0; wrong = 1 }
    END { if (NR != steps) print NR " steps, not " steps; exit wrong || NR != steps }' ||
    fail "the losses are not those of the reference"
if PTX_DRIVER_MEMORY=$((bytes - 16384)) "$program" >"$work/small" 2>"$work/error"; then
    fail "it runs in $((bytes - 16384)) bytes, too"
fi
grep -q 'out of memory' "$work/error" || fail "no 'out of memory': $(cat "$work/error")"
echo "$steps losses agree"
