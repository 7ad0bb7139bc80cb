#!/bin/bash
# names.sh NAMES SHIM [STUB]: checks that libcapuchin-interpose exports exactly the functions that
# names.txt lists, and, if the toolkit's stub of the driver is there, that the list has all of its functions.
set -u
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
status=0

functions() {
    nm -D --defined-only "$1" | awk '$2 ~ /[TW]/ { sub(/@.*/, "", $3); print $3 }' | grep '^cu[A-Z]' | sort -u
}

awk '!/^#/ { print $1 }' "$1" >"$work/listed"
sort -u "$work/listed" >"$work/sorted"
[ "$(wc -l <"$work/listed")" = "$(wc -l <"$work/sorted")" ] || { echo "a name is listed twice"; status=1; }
functions "$2" >"$work/exported"
diff "$work/sorted" "$work/exported" || { echo "listed (<) and exported (>) differ"; status=1; }
[ -s "$work/exported" ] || { echo "nothing is exported"; status=1; }
if [ -n "${3:-}" ]; then
    functions "$3" >"$work/stub"
    [ -s "$work/stub" ] || { echo "$3 has no functions"; status=1; }
    missing=$(comm -13 "$work/sorted" "$work/stub")
    [ -z "$missing" ] || { echo "in the toolkit's driver, but not listed: $(xargs <<<"$missing")"; status=1; }
fi
exit $status
