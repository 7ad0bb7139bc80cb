#!/bin/bash
# usage: ports.sh WORK-FOLDER BEFORE AFTER SOURCE-FOLDER
# Checks that the port of examples/ports changes fewer than 60 lines of the program, and that it prints the
# same losses before and after: without a limit, and in half of the memory in passive, guided and strict mode.
set -eu
. "$(dirname "$0")/../support/numbers.sh"
work=$1
before=$2
after=$3
source=$4
rm -rf "$work" && mkdir -p "$work"
export CAPUCHIN_DEVICE=host CAPUCHIN_PAGE=4KiB CAPUCHIN_WAIT_FOR_PLAN=1

fail() {
    echo "ports.sh: $*"
    exit 1
}

# Every line that the port adds or changes, comments included.
changed=$(diff "$source/before.c" "$source/after.c" | grep -c '^>') || true
[ "$changed" -gt 0 ] && [ "$changed" -lt 60 ] || fail "the port changes $changed lines"

# counter NAME: its value in the last report.
counter() {
    tail -n 1 "$work/report" | sed -nE "s/.*\"$1\":([0-9]+).*/\1/p"
}

# run NAME VARIABLE...: runs the port and compares its losses.
run() {
    local name=$1
    shift
    env CAPUCHIN_REPORT="$work/report" "$@" "$after" >"$work/after.out" 2>&1 ||
        fail "$name: $(cat "$work/after.out")"
    cmp "$work/before.out" "$work/after.out" || fail "$name: different losses"
}

"$before" >"$work/before.out"
has_only_numbers "$work/before.out" || fail "losses that are no numbers"
run "without a limit" CAPUCHIN_BUDGET=64MiB
half=$(($(counter live_peak_bytes) / 2))
run passive CAPUCHIN_BUDGET=$half
[ "$(counter evict_count)" -gt 0 ] || fail "nothing was evicted"
run guided CAPUCHIN_BUDGET=$half CAPUCHIN_MODE=guided
[ "$(grep '"iteration":[3-8],' "$work/report" | grep -c '"mode":"guided"')" -eq 6 ] ||
    fail "not guided from the third iteration to the eighth"
run strict CAPUCHIN_BUDGET=$half CAPUCHIN_STRICT=1 CAPUCHIN_MODE=guided
run "at the floor" CAPUCHIN_BUDGET="$(counter floor_bytes)"
echo "$changed changed lines; the same losses in $half bytes and at the floor"
