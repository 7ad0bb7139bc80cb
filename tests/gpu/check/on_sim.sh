#!/bin/bash
# on_sim.sh ROOT PROGRAMS WORK: tries the training runs of gpu_check.sh on the sim device with the pages
# of a GPU. A budget that is possible with small pages can be below the floor with those.
set -u
root=$1
programs=$2
work=$3
fashion=/usr/share/datasets/fashion-mnist

rm -rf "$work" && mkdir -p "$work/bin/lib" "$work/bin/data" || exit 1
ln -s "$programs/bin/train_gpt" "$programs/bin/train_fashion" "$work/bin/"
ln -s "$programs"/data/*.txt "$work/bin/data/"
[ -e "$fashion" ] && ln -s "$fashion" "$work/bin/data/fashion"
"$root/scripts/gpu_check.sh" --sim --bin "$work/bin" --out "$work/out" >"$work/log" 2>&1 &&
    grep -q '^strict  *train_gpt, guided.* ok ' "$work/log" && exit 0
cat "$work/log"
exit 1
