#!/bin/bash
# bench/runtime/duplex.sh [CAPUCHIN]: predictions on links that slow each other down.
#
# Networks of the zoo are run by the runtime on the sim device, whose copies are slower while the other
# direction is busy, too: for the A100 as in a report about one, where copies to the device fall to less
# than half, or both directions to little more than half; for the P100 both fall to two thirds. Prints what the plan of the first guided
# iteration, and of the last of 60, was predicted to take beyond the ops, and what it took, in percent of
# the ops' times, with the rates planned with and seen. All times are those of the sim device, so they do
# not depend on the machine. CAPUCHIN is the program, build/bin/capuchin if not given.
set -u
cd "$(dirname "$0")/../.." || exit 1
capuchin=${1:-build/bin/capuchin}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# number LINE KEY: 0 if the report does not have it, as those of earlier versions.
number() {
    sed -n "s/.*\"$2\":\([0-9]*\)[,}].*/\1/p" <<<"$1" | grep . || echo 0
}

# row NAME LINE IDEAL: prints predicted and measured overhead, and the rates.
row() {
    awk -v name="$1" -v predicted="$(number "$2" predicted_ns)" -v took="$(number "$2" time_ns)" -v ideal="$3" \
        -v out="$(number "$2" plan_d2h_bytes_per_s)" -v in_="$(number "$2" plan_h2d_bytes_per_s)" 'BEGIN {
        p = (predicted / ideal - 1) * 100; m = (took / ideal - 1) * 100
        printf "  %-7s predicted %6.2f %%  took %6.2f %%  off by %5.2f  planned with %5.2f and %5.2f GB/s\n",
            name, p, m, (p > m ? p - m : m - p), out / 1e9, in_ / 1e9 }'
}

# try MACHINE D2H H2D BUDGET PLANNER MODEL...
try() {
    local machine=$1 d2h=$2 h2d=$3 budget=$4 planner=$5 ideal guided
    shift 5

    "$capuchin" model "$@" --machine "$machine" -o "$work/trace" >/dev/null || exit 1
    rm -f "$work/report"
    CAPUCHIN_D2H_DUPLEX=$d2h CAPUCHIN_H2D_DUPLEX=$h2d "$capuchin" replay "$work/trace" --budget "$budget" \
        --planner "$planner" --effort quick --iterations 60 --report "$work/report" >"$work/out" 2>&1 ||
        { cat "$work/out" >&2; exit 1; }
    grep '"mode":"guided"' "$work/report" >"$work/guided" || { echo "$*: no plan" >&2; exit 1; }
    guided=$(head -n 1 "$work/guided")
    ideal=$(number "$guided" compute_ns)
    echo "$* on $machine, $budget, planner $planner"
    row first "$guided" "$ideal"
    row last "$(tail -n 1 "$work/guided")" "$ideal"
}

for planner in hybrid swap; do
    try a100 24e9 11e9 50% $planner gpt2-small --batch 8 --update asap
    try a100 24e9 11e9 50% $planner vgg16 --batch 64
    try a100 13e9 13e9 60% $planner gpt2-small --batch 2
    try a100 13e9 13e9 60% $planner gpt2-medium --batch 4 --update asap
    try p100 8e9 8e9 40% $planner bert-base --batch 16
    try p100 8e9 8e9 50% $planner inceptionv3 --batch 128
done
