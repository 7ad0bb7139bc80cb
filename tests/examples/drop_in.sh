#!/bin/sh
# usage: drop_in.sh BEFORE AFTER WORK-FOLDER CAPUCHIN: what they print is the same, with and without a
# limit; and capuchin explain reads the report.
set -e
"$1" >"$3/before.out"
"$2" >"$3/after.out"
cmp "$3/before.out" "$3/after.out"
CAPUCHIN_BUDGET=4MiB CAPUCHIN_REPORT=$3/after.report "$2" >"$3/after.out"
cmp "$3/before.out" "$3/after.out"
# What the environment got wrong is told, though there is no context yet.
CAPUCHIN_BUDGET=50% "$2" 2>"$3/after.error" && exit 1
grep -qF "CAPUCHIN_BUDGET='50%' is not a size" "$3/after.error"
grep -q '"evicted_bytes":[1-9]' "$3/after.report"
"$4" explain "$3/after.report" >"$3/after.explained"
grep -q '^where the time went' "$3/after.explained"
grep -q '^tensors moved most' "$3/after.explained"
