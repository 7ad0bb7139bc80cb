#!/bin/bash
# scripts/demo.sh BIN gpt|fashion: trains an example without a limit and then, following a plan, in half
# the memory. Shows that losses and weights are identical, and compares the predicted time with the
# measured one. STEPS overrides the number of steps.
set -u
bin=$(cd "$1" && pwd) || exit 1
case $2 in
gpt) command=(train_gpt --steps "${STEPS:-60}" --sample 160) ;;
fashion) command=(train_fashion --steps "${STEPS:-200}") ;;
*)
    echo "demo: there is no example '$2'; choose gpt or fashion" >&2
    exit 1
    ;;
esac
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# train NAME OPTION...: one run.
train() {
    local name=$1
    shift
    "$bin/${command[0]}" "${command[@]:1}" --device host --seed 1 --loss-log "$name.log" \
        --save "$name.weights" --report "$name.report" "$@" || {
        echo "demo: training failed" >&2
        exit 1
    }
}

# same SUFFIX WHAT: compares the files of both runs with this suffix.
same() {
    if ! cmp "free.$1" "half.$1"; then
        echo "demo: $2 DIFFER" >&2
        exit 1
    fi
    echo "$2: identical, $(wc -c <"free.$1") bytes"
}

# largest RUN COUNTER: the largest value of a counter over all iterations of a run.
largest() {
    sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" "$1.report" | sort -n | tail -n 1
}

# median_ms RUN TEXT: the median time in ms of the training iterations whose report contains the text.
median_ms() {
    grep '"label":"train' "$1.report" | grep -F "$2" |
        sed -n 's/.*"time_ns": *\([0-9]*\).*/\1/p' | sort -n |
        awk '{ v[NR] = $1 } END { if (NR > 0) printf "%.1f", v[int((NR + 1) / 2)] / 1e6 }'
}

# count RUN MODE: the number of training iterations of a run in this mode.
count() {
    grep '"label":"train' "$1.report" | grep -c "\"mode\":\"$2\""
}

mib() {
    echo $((($1 + 1048575) / 1048576))
}

echo "== 1. without a limit"
train free --budget none --mode off
echo
echo "== 2. in half the memory, in guided mode"
train half --budget 50% --mode guided
echo
echo "== 3. are the results the same?"
same log "losses of $(wc -l <free.log) steps"
same weights "weights"
peak=$(largest half peak_bytes)
budget=$(largest half budget_bytes)
echo "peak $peak of $budget bytes ($(mib "$peak") of $(mib "$budget") MiB);" \
    "an unlimited run needs $(largest half live_peak_bytes)"
if [ "${peak:-0}" -eq 0 ] || [ "$peak" -gt "$budget" ]; then
    echo "demo: the budget was exceeded" >&2
    exit 1
fi
guided=$(count half guided)
[ "$guided" -gt 0 ] || {
    echo "demo: no iteration was guided" >&2
    exit 1
}
# Training continues while a plan is made. How many iterations that takes varies.
echo "$(count half passive) iterations without a plan, then $guided with one"
# If op times change, a new plan is made. Only the iterations that followed the newest plan count.
predicted=$(sed -n '/"label":"train/s/.*"predicted_ns": *\([1-9][0-9]*\).*/\1/p' half.report | tail -n 1)
awk -v predicted="$predicted" -v guided="$(median_ms half "\"predicted_ns\":$predicted,")" \
    -v free="$(median_ms free '"mode":"off"')" 'BEGIN {
    printf "time per iteration: %.1f ms predicted, %.1f ms measured (median); %.1f ms without a limit\n",
        predicted / 1e6, guided, free }'
