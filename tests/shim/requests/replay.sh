#!/bin/bash
# replay.sh NAMES SHIM DRIVER REPLAY START LOG OWN [INCLUDE RUNTIME]
# Asks libcapuchin-interpose for every variant of every function that CUDA's headers declare (cuda-*.txt),
# and for what CUDA's runtimes ask for (cudart-*.txt). Each must be forwarded or wrapped, or be in refused.txt.
# OWN is the runtime of tests/ptx: of the functions for which CUDA's asks, it may ask for the same versions only.
# Where a toolkit is installed, its lists are made anew: they must be those that are kept here, if its version
# is here, and are replayed in any case.
set -eu
names=$1 shim=$2 driver=$3 replay=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

complain() {
    echo "$1"
    status=1
}
ask() { # VARIANTS <requests
    ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 LD_PRELOAD=$shim CAPU_RUN_MODE=passive \
        CAPU_RUN_DRIVER=$driver VARIANTS=$1 "$replay"
}
check() { # VARIANTS REQUESTS
    cat "$1" "$2" | LC_ALL=C sort -u >"$work/asked"
    ask "$1" <"$work/asked" >"$work/given"
    [ "$(wc -l <"$work/given")" = "$(wc -l <"$work/asked")" ] || complain "$1: not all was answered"
    grep -E ' (missing|unknown)$' "$work/given" && complain "$2: not in $1"
    awk '$4 == "refused" { print $1, $2, $3 }' "$work/given" >>"$work/refused"
}

grep -v '^#' "$here/refused.txt" | awk 'NF < 5 { print "no reason: " $0 }' | grep . && status=1
grep -v '^#' "$here/refused.txt" | cut -d' ' -f1-3 | LC_ALL=C sort >"$work/allowed"
for variants in "$here"/cuda-*.txt; do
    runtime=$here/cudart-${variants##*/cuda-}
    check "$variants" "$runtime"
done
# A wrapper must be for a variant that there is.
awk '/^#/ { next } $2 == "wrap" || $2 == "count" {
    base = $1
    flags = sub(/_pt[sd][sz]$/, "", base) ? 2 : 0
    sub(/_v[0-9]+$/, "", base)
    print base, $3, flags }' "$names" |
    LC_ALL=C sort >"$work/wrapped"
cat "$here"/cuda-*.txt | LC_ALL=C sort -u >"$work/variants"
LC_ALL=C comm -23 "$work/wrapped" "$work/variants" | grep . && complain "in $names, but no such variant is declared"

"$here/make.sh" requests "$5" "$6" "$7" | cut -d' ' -f1-2 >"$work/own"
[ -s "$work/own" ] || complain "$7 asks for nothing"
cut -d' ' -f1-2 "$here/cudart-13.0.txt" | awk 'NR == FNR { is_asked[$0] = has_name[$1] = 1; next }
    $1 in has_name && !($0 in is_asked) { print "the runtime of tests/ptx asks for " $0; wrong = 1 }
    END { exit wrong }' - "$work/own" || status=1

if [ $# -gt 7 ]; then
    version=$(awk '$2 == "CUDA_VERSION" { printf "%d.%d", $3 / 1000, $3 % 1000 / 10; exit }' "$8/cuda.h")
    "$here/make.sh" variants "$8" >"$work/cuda"
    "$here/make.sh" requests "$5" "$6" "$9" >"$work/cudart"
    if [ -e "$here/cuda-$version.txt" ]; then
        diff "$here/cuda-$version.txt" "$work/cuda" || complain "the headers in $8 declare something else"
        diff "$here/cudart-$version.txt" "$work/cudart" || complain "$9 asks for something else"
    fi
    check "$work/cuda" "$work/cudart"
fi
LC_ALL=C sort -u -o "$work/refused" "$work/refused"
diff "$work/allowed" "$work/refused" || complain "allowed in refused.txt (<) and refused (>) differ"
exit $status
