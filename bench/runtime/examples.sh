#!/bin/bash
# examples.sh BIN: runs the training examples of the folder BIN in guided mode, without waiting for
# plans, and prints when they are guided: the first guided iteration, for how long a plan had been in
# the making when the last iteration before it began (by the clock), and which stage of a plan was
# active at the end.
set -eu
bin=${1:?usage: examples.sh BIN}
report=$(mktemp)
trap 'rm -f "$report"' EXIT

# number KEY: its value in a line of a report.
number() {
    grep -o "\"$1\":[0-9]*" | head -n 1 | cut -d: -f2
}

# measure BUDGET PROGRAM ARGUMENT...
measure() {
    local budget=$1 train before
    shift
    CAPUCHIN_REPORT=$report "$bin/$1" "${@:2}" --device host --mode guided --budget "$budget" --steps 12 >/dev/null
    train=$(grep '"label":"train"' "$report")
    before=$(sed '/"mode":"guided"/,$d' <<<"$train" | tail -n 1 | number planning_ns)
    printf '%-28s %6s %6s ops   first guided: iteration %s, planning before: %s ms, stage at the end: %s\n' "$*" \
        "$budget" "$(head -n 1 <<<"$train" | number op_count)" \
        "$(grep -m 1 '"mode":"guided"' <<<"$train" | number iteration)" "$((before / 1000000))" \
        "$(tail -n 1 <<<"$train" | number plan_stage)"
}

for budget in 70% 50%; do
    measure "$budget" train_fashion --batch 64
    measure "$budget" train_gpt --batch 4
    measure "$budget" train_cnn --batch 2 --side 64 --width 16
done
