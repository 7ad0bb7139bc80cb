#!/bin/bash
# on_sim.sh ROOT PROGRAMS WORK: tries the training runs of gpu_check.sh on the sim device with the pages
# of a GPU. A budget that is possible with small pages can be below the floor with those.
set -u
. "$(dirname "$0")/../../support/effort.sh"
root=$1
programs=$2
work=$3
fashion=/usr/share/datasets/fashion-mnist

rm -rf "$work" && mkdir -p "$work/bundle/bin" "$work/bundle/data" || exit 1
ln -s "$programs"/bin/train_{gpt,fashion,cnn} "$work/bundle/bin/"
ln -s "$programs"/data/*.txt "$work/bundle/data/"
[ -e "$fashion" ] && ln -s "$fashion" "$work/bundle/data/fashion"

# The budgets of budgets.sh; one below the floor is named.
budgets=$root/bench/gpu/budgets.sh
text=$(ls "$work"/bundle/data/*.txt)
POSSIBLE=1 "$budgets" "$work/bundle/bin" "$text" /dev/null >"$work/log" 2>&1 &&
    [ "$(grep -c ': possible$' "$work/log")" -eq 38 ] || { cat "$work/log"; exit 1; }
if BUDGETS="50 10" POSSIBLE=1 MODELS=cnn "$budgets" "$work/bundle/bin" "$text" /dev/null >"$work/log" 2>&1 ||
    ! grep -q '^cnn 10 %: .*below the floor' "$work/log"; then
    echo "a budget below the floor is not found: $(cat "$work/log")"
    exit 1
fi

# A search beforehand: the batch that it finds fits, and a larger one does not.
rm -f "$work/batches"
CAPUCHIN_HOST_BUDGET=1000000000 FIND=1 MODELS=gpt-tiny BUDGET=16MiB "$root/bench/gpu/batches.sh" "$work/bundle/bin" "$text" \
    "$work/batches" >"$work/log" 2>&1 && [ "$(grep -c '^gpt-tiny [a-z]* 16MiB 1000000000 [1-9][0-9]*$' "$work/batches")" -eq 3 ] ||
    { echo "no batches were found: $(cat "$work/log" "$work/batches")"; exit 1; }

# Whether there is a plan does not depend on how long one is searched for.
runs_all_cases || export CAPUCHIN_EFFORT=quick
"$root/scripts/gpu_check.sh" --sim --bin "$work/bundle" --out "$work/out" >"$work/log" 2>&1 &&
    grep -q '^strict  *train_gpt, guided.* ok ' "$work/log" && exit 0
cat "$work/log"
exit 1
