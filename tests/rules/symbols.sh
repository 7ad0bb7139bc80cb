#!/bin/bash
# symbols.sh INCLUDE SHARED STATIC [PARALLEL]: checks that the global symbols of both libraries are exactly
# the functions that the headers (private.h as well) declare with CAPU_API; those of capuchin/parallel.h are in
# libcapuchin-mpi, PARALLEL.
set -u
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# declared HEADER...: a declaration can span several lines. It starts with CAPU_API, and the name is before
# the "(".
declared() {
    cat "$@" | tr '\n' ' ' | grep -oE 'CAPU_API [^(;]*\(' | grep -oE 'capu(chin)?_[a-z0-9_]+ *\($' | tr -d ' (' | sort -u
}

exported() {
    nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u
}

mapfile -t headers < <(find "$1/capuchin" -name '*.h' ! -name parallel.h)
declared "${headers[@]}" >"$work/public"
exported "$2" >"$work/shared"
nm -g --defined-only "$3" | awk 'NF == 3 { print $3 }' | sort -u >"$work/static"

status=0
kinds="shared static"
if [ $# -gt 3 ]; then
    kinds="$kinds parallel"
    declared "$1/capuchin/parallel.h" >"$work/public_parallel"
    exported "$4" >"$work/parallel"
fi
[ -s "$work/public" ] || { echo "no public function found in $1"; status=1; }
for kind in $kinds; do
    public=$work/public
    [ "$kind" != parallel ] || public=$work/public_parallel
    # Sanitizers and coverage add symbols of their own.
    grep -vE '^(__asan_|__odr_asan|__tsan_|__ubsan_|__sancov_|__start_|__stop_)' "$work/$kind" \
        >"$work/own"
    comm -13 "$public" "$work/own" | sed "s/^/$kind: not public, but global: /" >"$work/bad"
    comm -23 "$public" "$work/own" | sed "s/^/$kind: public, but missing: /" >>"$work/bad"
    cat "$work/bad"
    [ ! -s "$work/bad" ] || status=1
done
exit $status
