#!/bin/sh
# usage: drop_in.sh BEFORE AFTER WORK-FOLDER CAPUCHIN
# Checks that the program prints the same before and after the port, with and without a limit, and
# that `capuchin explain` reads the report.
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
