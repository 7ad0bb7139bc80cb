#!/bin/bash
# scripts/demo_parallel.sh BIN: trains a GPT in one process without a limit, each batch in two parts, and
# then on two ranks, each in half the memory it needs, following a plan. Shows that losses and weights are
# identical, and prints the merged report of both ranks. STEPS overrides the number of steps.
set -u -o pipefail
bin=$(cd "$1" && pwd) || exit 1
scripts=$(cd "$(dirname "$0")" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
ranks=2
command=("$bin/train_gpt" --device host --seed 1 --steps "${STEPS:-60}" --validate 30)

fail() {
    echo "demo: $*" >&2
    exit 1
}

# same SUFFIX WHAT: compares the files of both runs with this suffix.
same() {
    cmp "one.$1" "ranks.$1" || fail "$2 DIFFER"
    echo "$2: identical, $(wc -c <"one.$1") bytes"
}

# largest RANK COUNTER: the largest value of a counter over all iterations of a rank.
largest() {
    sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" "r.$1" | sort -n | tail -n 1
}

echo "== 1. one process without a limit, each batch in $ranks parts"
"${command[@]}" --replicas $ranks --mode off --loss-log one.log --save one.weights |
    tee one.out || fail "training failed"
echo
echo "== 2. $ranks ranks, each in half the memory, in guided mode"
"$scripts/ranks.sh" $ranks "${command[@]}" --budget 50% --mode guided --report r.%r --loss-log ranks.log \
    --save ranks.weights | tee ranks.out || fail "training failed"
echo
echo "== 3. are the results the same?"
same log "losses of $(wc -l <one.log) steps"
same weights "weights"
grep '^validation' one.out >one.validation
grep '^validation' ranks.out | tr -d '\r' >ranks.validation
same validation "validation losses"
for ((rank = 0; rank < ranks; rank++)); do
    peak=$(largest $rank peak_bytes)
    budget=$(largest $rank budget_bytes)
    echo "rank $rank: peak $peak of $budget bytes; an unlimited run needs $(largest $rank live_peak_bytes)"
    [ "${peak:-0}" -gt 0 ] && [ "$peak" -le "$budget" ] || fail "the budget was exceeded"
    guided=$(grep '"label":"train' "r.$rank" | grep -c '"mode":"guided"')
    [ "$guided" -gt 0 ] || fail "no iteration of rank $rank was guided"
done
echo
echo "== 4. the merged report: capuchin explain r.*"
"$bin/capuchin" explain r.*
