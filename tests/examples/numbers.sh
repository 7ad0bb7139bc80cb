#!/bin/sh
# usage: numbers.sh WORK-FOLDER
# Checks support/numbers.sh: without it, runs whose losses are all NaN would count as equal.
. "$(dirname "$0")/../support/numbers.sh"
rm -rf "$1" && mkdir -p "$1" || exit 1
file=$1/log
printf '1 0x1.8p+1\n2 0x1.4p+1\n' >"$file"
has_only_numbers "$file" || { echo "numbers are rejected"; exit 1; }
for value in nan -nan inf -inf NaN; do
    printf '1 0x1.8p+1\n2 %s\n' "$value" >"$file"
    has_only_numbers "$file" && { echo "$value is accepted"; exit 1; }
done
: >"$file"
has_only_numbers "$file" && { echo "an empty file is accepted"; exit 1; }
exit 0
