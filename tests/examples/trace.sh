#!/bin/sh
# Checks that the file written by --trace is a valid trace, and that its peak without a limit equals
# the one in the report.
#
# usage: trace.sh WORK-FOLDER CAPUCHIN PROGRAM [OPTION...]
set -u
work=$1
capuchin=$2
shift 2
rm -rf "$work" && mkdir -p "$work" || exit 1

fail() {
    echo "trace.sh: $*"
    exit 1
}

# The page size is fixed, since the peak of the trace is rounded up to it below.
page=65536
CAPUCHIN_PAGE=$page "$@" --device host --mode passive --budget 60% --steps 2 \
    --trace "$work/trace" --report "$work/report" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
"$capuchin" check "$work/trace" || fail "the trace is not valid"
"$capuchin" plan "$work/trace" --machine p100 --page $page --budget 100% -o "$work/plan" \
    >/dev/null || fail "no plan"
peak=$(sed -n '1s/.*"budget_bytes":\([0-9]*\).*/\1/p' "$work/plan")
reported=$(sed -n 's/.*"iteration":2,.*"live_peak_bytes":\([0-9]*\).*/\1/p' "$work/report")
[ "$peak" -eq "$reported" ] || fail "the trace's peak is $peak, the report's $reported"
grep -q '"kind":"parameter"' "$work/trace" || fail "no tensor is a parameter"
grep -q '"updates":\[[0-9]' "$work/trace" || fail "no op updates anything"
echo "a valid trace, and a peak of $peak bytes"
