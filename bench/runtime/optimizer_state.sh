#!/bin/bash
# optimizer_state.sh BIN TEXT: trains train_gpt of the folder BIN on TEXT where most of what is swapped
# is optimizer state: a small batch, updates as soon as gradients are complete, links of 4 GB/s. Without a
# limit, in passive mode and guided, at 50 and 40 % of the memory. Losses and weights must be the same to
# the byte. Prints the medians of the steps from the fourth on, what the plan predicts, and how much of
# what was copied out is optimizer state. The modes run one after the other, three times.
set -eu
bin=${1:?usage: optimizer_state.sh BIN TEXT}
text=${2:?usage: optimizer_state.sh BIN TEXT}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CAPUCHIN_D2H=4e9 CAPUCHIN_H2D=4e9

# train NAME OPTION...: appends to the report NAME; compares with the run without a limit, if there is one.
train() {
    local name=$1
    shift
    "$bin/train_gpt" --device host --data "$text" --steps 24 --layers 6 --channels 256 --seq 64 --batch 2 \
        --update asap --report "$work/report" --loss-log "$work/losses" --save "$work/weights" "$@" >/dev/null
    for result in losses weights; do
        [ -e "$work/off.$result" ] || cp "$work/$result" "$work/off.$result"
        cmp "$work/off.$result" "$work/$result"
    done
    grep '"type":"report"' "$work/report" | grep '"label":"train"' | sed 1,3d >>"$work/$name"
}

# median NAME KEY: of the values in a report, in ms.
median() {
    grep -o "\"$2\":[0-9]*" "$work/$1" | cut -d: -f2 | sort -n |
        awk '{ value[NR] = $1 } END { printf "%.1f", value[int((NR + 1) / 2)] / 1e6 }'
}

# share NAME: the percentage of optimizer state in what the last iteration copied out.
share() {
    tail -n 1 "$work/$1" | grep -o '{"tensor":"[^"]*","bytes":[0-9]*,"method":"swap"' |
        awk -F'[":,]+' '{ all += $5; if ($3 ~ /\.moment[12]$/) state += $5 }
            END { printf "%.0f", (all > 0 ? 100 * state / all : 0) }'
}

for _ in 1 2 3; do
    train off --mode off --budget none
    for percent in 50 40; do
        train "passive-$percent" --mode passive --budget "$percent%"
        train "guided-$percent" --mode guided --wait-for-plan --budget "$percent%"
    done
done
printf '%-8s %10s %12s %12s %14s %24s\n' budget "off, ms" "passive, ms" "guided, ms" "predicted, ms" "optimizer state, %"
for percent in 50 40; do
    printf '%-8s %10s %12s %12s %14s %24s\n' "$percent %" "$(median off time_ns)" \
        "$(median "passive-$percent" time_ns)" "$(median "guided-$percent" time_ns)" \
        "$(median "guided-$percent" predicted_ns)" "$(share "guided-$percent")"
done
