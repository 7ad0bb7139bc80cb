#!/bin/bash
# batches.sh PROGRAMS TEXT RESULTS [--quick]: the largest batch that trains within a budget.
#
# GPT-2 d12 on TEXT and ResNet-50 on images of 224 x 224 (cnn), in fp32 and bf16 (--quick: d12 in bf16
# and ResNet-50 in fp32), in 8 GiB (BUDGET): in the mode off, in which everything must fit, and in passive
# and guided mode. The sim device finds out whether a batch is possible; the largest one is then trained
# for some steps. Prints a table and appends JSON lines to RESULTS.
#
# The search takes minutes, and no GPU. FIND=1 does nothing else, within a host budget that
# CAPUCHIN_HOST_BUDGET must give in bytes: RESULTS receives a line "MODEL MODE BUDGET HOST-BUDGET BATCH" for
# each. FOUND names such a file: its batches are trained without a search, if the host budget here is no
# smaller than the one they were found with.
set -u
programs=$1
text=$2
results=$3
quick=${4:-}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
budget=${BUDGET:-8GiB}
device=${DEVICE:-cuda}
models="gpt-d12 gpt-d12-bf16 cnn cnn-bf16"
steps=5
if [ -n "$quick" ]; then
    models="gpt-d12-bf16 cnn"
    steps=4
fi
models=${MODELS:-$models}

choose() {
    case $1 in
    gpt-d12 | gpt-d12-bf16)
        command=("$programs/train_gpt" --data "$text" --model d12 --align 64 --update asap)
        [ "$1" = gpt-d12 ] || command+=(--dtype bf16)
        units=1024 unit=tokens
        ;;
    gpt-small | gpt-small-bf16) # for trying this script
        command=("$programs/train_gpt" --data "$text" --layers 2)
        [ "$1" = gpt-small ] || command+=(--dtype bf16)
        units=128 unit=bytes
        ;;
    gpt-tiny)
        command=("$programs/train_gpt" --data "$text" --layers 2 --channels 64 --heads 2 --seq 16
            --update asap)
        units=16 unit=bytes
        ;;
    cnn | cnn-bf16)
        command=("$programs/train_cnn")
        [ "$1" = cnn ] || command+=(--dtype bf16)
        units=1 unit=images
        ;;
    *)
        echo "batches.sh: there is no model $1" >&2
        exit 2
        ;;
    esac
}

# fits MODE BATCH. A guided run begins in passive mode, and stays in it if no plan is found.
fits() {
    local mode=$1

    [ "$mode" = guided ] && mode=passive
    CAPUCHIN_PAGE=${CAPUCHIN_PAGE:-2MiB} "${command[@]}" --device sim --mode "$mode" \
        --budget "$budget" --batch "$2" --steps 1 >"$work/fits" 2>&1
}

largest() {
    local mode=$1 low=0 high=1

    while [ $high -le 4096 ] && fits "$mode" $high; do
        low=$high
        high=$((2 * high))
    done
    while [ $((high - low)) -gt $((low / 16 + 1)) ]; do
        if fits "$mode" $(((low + high) / 2)); then
            low=$(((low + high) / 2))
        else
            high=$(((low + high) / 2))
        fi
    done
    echo $low
}

# found MODEL MODE: the batch that was found beforehand; nothing if there is none that fits here.
found() {
    [ -n "${FOUND:-}" ] && awk -v model="$1" -v mode="$2" -v budget="$budget" -v host="${CAPUCHIN_HOST_BUDGET:-0}" \
        '$1 == model && $2 == mode && $3 == budget && $4 <= host + 0 { print $5; exit }' "$FOUND"
}

if [ -n "${FIND:-}" ]; then
    [ -n "${CAPUCHIN_HOST_BUDGET:-}" ] || { echo "batches.sh: FIND needs CAPUCHIN_HOST_BUDGET" >&2; exit 2; }
    for model in $models; do
        choose "$model"
        for mode in off passive guided; do
            batch=$(largest $mode)
            [ "$batch" -gt 0 ] && echo "$model $mode $budget $CAPUCHIN_HOST_BUDGET $batch" >>"$results"
        done
    done
    exit 0
fi

failed=0
for model in $models; do
    choose "$model"
    for mode in off passive guided; do
        batch=$(found "$model" $mode)
        batch=${batch:-$(largest $mode)}
        if [ "$batch" -eq 0 ] && ! grep -q 'a budget of .* is below' "$work/fits"; then
            # It failed for another reason than the budget.
            tail -n 1 "$work/fits" >&2
            failed=1
            continue
        fi
        if [ "$batch" -eq 0 ]; then
            printf '%-12s %-8s in %s: not even a single sample\n' "$model" $mode "$budget"
            continue
        fi
        if ! timeout --foreground -k 5 "${PATIENCE:-120}" "${command[@]}" --device "$device" --mode $mode --budget "$budget" \
            --batch "$batch" --steps $steps --report "$work/report" >"$work/out" 2>&1; then
            printf '%-12s %-8s in %s: batch %d: %s\n' "$model" $mode "$budget" "$batch" \
                "$(tail -n 1 "$work/out")" >&2
            failed=1
            continue
        fi
        ns=$(sed -n '$s/.*"time_ns":\([0-9]*\).*/\1/p' "$work/report")
        rate=$(awk -v n=$((batch * units)) -v t="$ns" 'BEGIN { printf "%.0f", n / t * 1e9 }')
        printf '%-12s %-8s in %s: batch %5d  %9s %s/s\n' "$model" $mode "$budget" "$batch" "$rate" \
            "$unit"
        printf '{"bench":"batches","model":"%s","mode":"%s","budget":"%s","batch":%s,"%s_per_s":%s}\n' \
            "$model" $mode "$budget" "$batch" "$unit" "$rate" >>"$results"
    done
done
exit $failed
