#!/bin/bash
# budgets.sh PROGRAMS TEXT RESULTS [--quick]: the speed of training in less memory than it needs.
#
# GPT-2 d12 and d24 on TEXT, d12 also with an attention that keeps no scores (fused), and ResNet-50 on images
# of 224 x 224 (cnn), in fp32 and bf16: without a limit, and at 100, 70, 50, 40 and 30 % of what they need, in each mode (--quick: d12, and ResNet-50 in fp32, at
# 50 and 30 %). Tokens or images per second, peak bytes, and the time of an iteration, measured and as
# predicted by the planners. With POSSIBLE=1 nothing is measured: an iteration in passive mode on the sim
# device, with a GPU's pages, says whether each budget is possible. BUDGETS gives other percentages, MODELS
# other models. Prints a table and appends JSON lines to RESULTS. Numbers are medians over the iterations
# after the third.
set -u
programs=$1
text=$2
results=$3
quick=${4:-}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
steps=10
patience=90 # seconds for a planner
device=${DEVICE:-cuda}
models="gpt-d12 gpt-d12-bf16 gpt-d12-fused gpt-d12-fused-bf16 gpt-d24 gpt-d24-bf16 cnn cnn-bf16"
budgets="100 70 50 40 30"
if [ -n "$quick" ]; then
    steps=7
    patience=15
    models="gpt-d12 gpt-d12-bf16 cnn"
    budgets="50 30"
fi
models=${MODELS:-$models}
budgets=${BUDGETS:-$budgets}

# The command of a model, its number of tokens or images per step, and its budgets in percent.
choose() {
    percents=$budgets
    # Its optimizer needs 32 % at once.
    [ "$1" != gpt-d24-bf16 ] || percents=${budgets/30/35}
    # Without scores, logits and parameters are a larger share: 39 % of it is needed at once.
    case $1 in *-fused*) percents=${budgets/30/} ;; esac
    case $1 in
    gpt-d12* | gpt-d24*)
        local size=${1#gpt-}
        command=("$programs/train_gpt" --data "$text" --model "${size%%-*}" --align 64 --batch 8)
        case $1 in *-bf16) command+=(--dtype bf16) ;; esac
        case $1 in *-fused*) command+=(--attention fused) ;; esac
        units=$((8 * 1024)) unit=tokens
        ;;
    gpt-small | gpt-small-bf16) # for trying this script
        command=("$programs/train_gpt" --data "$text" --layers 2)
        [ "$1" = gpt-small ] || command+=(--dtype bf16)
        units=$((8 * 128)) unit=bytes
        ;;
    gpt-tiny)
        command=("$programs/train_gpt" --data "$text" --layers 2 --channels 64 --heads 2 --seq 16
            --batch 2 --update asap)
        units=$((2 * 16)) unit=bytes
        steps=4 percents=75
        ;;
    cnn | cnn-bf16)
        command=("$programs/train_cnn" --batch 64)
        [ "$1" = cnn ] || command+=(--dtype bf16)
        units=64 unit=images
        ;;
    cnn-tiny | cnn-tiny-bf16)
        command=("$programs/train_cnn" --side 16 --width 1 --batch 1)
        [ "$1" = cnn-tiny ] || command+=(--dtype bf16)
        units=1 unit=images
        steps=4 percents= # norms are slow without a GPU
        ;;
    *)
        echo "budgets.sh: there is no model $1" >&2
        exit 2
        ;;
    esac
}

# median FILE KEY: over the training iterations after the third that have a number for KEY; null: none has.
median() {
    grep '"label":"train"' "$1" | sed -n "4,\$s/.*\"$2\":\([0-9][0-9]*\).*/\1/p" | sort -n |
        awk '{ value[NR] = $1 } END { if (NR) print value[int((NR + 1) / 2)]; else print "null" }'
}

# predict PLANNER BYTES: the nanoseconds of an iteration with that planner's plan for the recorded trace.
predict() {
    timeout --foreground -k 5 "$patience" "$programs/capuchin" plan "$work/trace" --budget "$2" --planner "$1" --page 2097152 \
        --effort quick --json -o "$work/plan" 2>/dev/null |
        sed -n 's/.*"iteration_ns":\([0-9]*\).*/\1/p'
}

# row MODEL MODE PERCENT PREDICTED: prints the row of the run that has just ended, from its report.
row() {
    local ns peak budget rate

    ns=$(median "$work/report" time_ns)
    peak=$(median "$work/report" peak_bytes)
    budget=$(median "$work/report" budget_bytes)
    rate=$(awk -v n="$units" -v t="$ns" 'BEGIN { printf "%.0f", (t > 0 ? n / t * 1e9 : 0) }')
    printf '%-12s %-8s %4s %%  %9s %s/s  peak %8.1f MiB  %9.2f ms  predicted %s ms\n' "$1" "$2" "$3" \
        "$rate" "$unit" "$(awk -v b="$peak" 'BEGIN { print b / 1048576 }')" \
        "$(awk -v t="$ns" 'BEGIN { print t / 1e6 }')" \
        "$(awk -v t="${4:-0}" 'BEGIN { if (t > 0) printf "%.2f", t / 1e6; else printf "-" }')"
    printf '{"bench":"budgets","model":"%s","mode":"%s","percent":%s,"budget_bytes":%s,"peak_bytes":%s,"iteration_ns":%s,"predicted_ns":%s,"%s_per_s":%s,"stall_ns":%s,"evicted_bytes":%s,"recompute_ns":%s}\n' \
        "$1" "$2" "$3" "$budget" "$peak" "$ns" "${4:-null}" "$unit" "$rate" \
        "$(median "$work/report" stall_ns)" "$(median "$work/report" evicted_bytes)" \
        "$(median "$work/report" recompute_ns)" >>"$results"
}

# possible MODEL: fails if the model cannot be trained in one of the budgets, which it names.
possible() {
    local run=("${command[@]}" --device sim --steps 1) live percent result=0
    export CAPUCHIN_PAGE=${CAPUCHIN_PAGE:-2MiB} CAPUCHIN_HOST_BUDGET=1e18

    "${run[@]}" --mode off --report "$work/report" >"$work/out" 2>&1 || { tail -n 1 "$work/out" >&2; return 1; }
    live=$(sed -n 's/.*"live_peak_bytes":\([0-9]*\).*/\1/p' "$work/report" | tail -n 1)
    for percent in $percents; do
        if "${run[@]}" --mode passive --budget $((live * percent / 100)) >"$work/out" 2>&1; then
            echo "$1 $percent %: possible"
        else
            echo "$1 $percent %: $(tail -n 1 "$work/out")" >&2
            result=1
        fi
    done
    return $result
}

failed=0
for model in $models; do
    choose "$model"
    if [ -n "${POSSIBLE:-}" ]; then
        possible "$model" || failed=1
        continue
    fi
    rm -f "$work/trace"
    # Without a limit, recorded: the reference of the percentages, and the trace for the planners.
    if ! timeout --foreground -k 5 "${PATIENCE:-150}" "${command[@]}" --device "$device" --mode off --steps "$steps" --report "$work/report" \
        --trace "$work/trace" >"$work/out" 2>&1; then
        cat "$work/out" >&2
        failed=1
        continue
    fi
    row "$model" off 100 ""
    live=$(median "$work/report" live_peak_bytes)
    for percent in $percents; do
        bytes=$((live * percent / 100))
        for mode in passive guided; do
            # Guided mode first measures, plans and refines: it takes more iterations to be steady.
            count=$steps
            [ $mode = guided ] && count=$((2 * steps))
            wait=
            [ $mode = guided ] && wait=--wait-for-plan
            if timeout --foreground -k 5 "${PATIENCE:-150}" "${command[@]}" $wait --device "$device" --mode $mode --budget $bytes --steps $count \
                --report "$work/report" >"$work/out" 2>&1; then
                if [ $mode = guided ]; then # the newest iterations only
                    tail -n "$steps" "$work/report" >"$work/newest" && mv "$work/newest" "$work/report"
                    grep -q '"mode":"guided".*"diverged":0' "$work/report" || mode=unplanned # it stayed passive
                fi
                # A plan that was made anyway has been predicted, which costs no more time on the GPU's machine.
                predicted=$(sed -n 's/.*"predicted_ns":\([1-9][0-9]*\).*/\1/p' "$work/report" | tail -n 1)
                [ $mode = passive ] && predicted=$(predict lru $bytes)
                row "$model" $mode "$percent" "$predicted"
            elif grep -q 'below the floor' "$work/out"; then
                printf '%-12s %-8s %4s %%  %s\n' "$model" $mode "$percent" "$(tail -n 1 "$work/out")"
            else
                cat "$work/out" >&2
                failed=1
            fi
        done
    done
done
exit $failed
