#!/bin/sh
# usage: drop_in.sh BEFORE AFTER WORK-FOLDER CAPUCHIN
# Checks that the program prints the same before and after the port, with and without a limit and in
# guided mode 2 % above the smallest budget, and that `capuchin explain` reads the report.
set -e
. "$(dirname "$0")/../support/numbers.sh"
"$1" >"$3/before.out"
has_only_numbers "$3/before.out"
"$2" >"$3/after.out"
cmp "$3/before.out" "$3/after.out"
CAPUCHIN_BUDGET=4MiB CAPUCHIN_REPORT=$3/after.report "$2" >"$3/after.out"
cmp "$3/before.out" "$3/after.out"
# A wrong environment variable is reported although there is no context yet.
CAPUCHIN_BUDGET=50% "$2" 2>"$3/after.error" && exit 1
grep -qF "CAPUCHIN_BUDGET='50%' is not a size" "$3/after.error"
grep -q '"evicted_bytes":[1-9]' "$3/after.report"
"$4" explain "$3/after.report" >"$3/after.explained"
grep -q '^where the time went' "$3/after.explained"
grep -q '^tensors moved most' "$3/after.explained"
floor=$(sed -n 's/.*"floor_bytes":\([0-9]*\).*/\1/p' "$3/after.report" | sort -n | tail -n 1)
CAPUCHIN_MODE=guided CAPUCHIN_WAIT_FOR_PLAN=1 CAPUCHIN_BUDGET=$((floor * 102 / 100)) \
    CAPUCHIN_REPORT=$3/guided.report "$2" >"$3/after.out"
cmp "$3/before.out" "$3/after.out"
all=$(grep -c '"type":"report"' "$3/guided.report")
guided=$(grep -c '"mode":"guided"' "$3/guided.report")
[ $((guided * 2)) -gt "$all" ] || { echo "$guided of $all iterations were guided" && exit 1; }
