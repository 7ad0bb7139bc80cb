#!/bin/bash
# symbols.sh INCLUDE SHARED STATIC: checks that the global symbols of both libraries are exactly the
# functions that the public headers declare with CAPU_API.
set -u
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# A declaration can span several lines. It starts with CAPU_API, and the name is before the "(".
cat "$1"/capuchin/*.h | tr '\n' ' ' | grep -oE 'CAPU_API [^(;]*\(' |
    grep -oE 'capu_[a-z0-9_]+ *\($' | tr -d ' (' | sort -u >"$work/public"
nm -D --defined-only "$2" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    sort -u >"$work/shared"
nm -g --defined-only "$3" | awk 'NF == 3 { print $3 }' | sort -u >"$work/static"

status=0
[ -s "$work/public" ] || { echo "no public function found in $1"; status=1; }
for kind in shared static; do
    # Sanitizers and coverage add symbols of their own.
    grep -vE '^(__asan_|__odr_asan|__tsan_|__ubsan_|__sancov_|__start_|__stop_)' "$work/$kind" \
        >"$work/own"
    comm -13 "$work/public" "$work/own" | sed "s/^/$kind: not public, but global: /" >"$work/bad"
    comm -23 "$work/public" "$work/own" | sed "s/^/$kind: public, but missing: /" >>"$work/bad"
    cat "$work/bad"
    [ ! -s "$work/bad" ] || status=1
done
exit $status
