#!/bin/bash
# unwatched.sh COMMAND LIBRARIES TRAPS: COMMAND runs the traps in strict mode as on a device that cannot watch accesses
# (errors.c). The checksums around their first launches must find stores that are not declared, and nothing else.
set -u
command=$1 libraries=$2 traps=$3
export SHIM_UNWATCHED=1
. "${0%/*}/../within.bash"

measure "$traps"
run $((peak * 75 / 100)) --strict "$traps"
grep -Eq '^verified: [2-9][0-9] launches, 0 of them changed other memory$' "$work/report" || fail "not verified"
for error in missed_store short_word; do
    SHIM_ERROR=$error "$command" run --strict --budget 150000 "$traps" triangle >"$work/output" 2>"$work/messages"
    code=$?
    [ $code -eq 1 ] || fail "$error: exit code $code"
    grep -q -e '--strict: the kernel .*triangle.* has changed memory that it was not expected' "$work/messages" ||
        fail "$error: no line about it"
done
# Memory that changes while a plan copies is not compared.
run $((peak * 75 / 100)) --mode guided --strict "$traps"
grep -q '^verified: ' "$work/report" && fail "verified in guided mode"
echo "stores were found"
