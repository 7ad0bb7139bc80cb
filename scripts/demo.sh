#!/bin/bash
# scripts/demo.sh BIN gpt|fashion: trains an example without a limit and in half the memory, and shows
# that the losses and weights are the same to the bit. STEPS overrides how long.
set -u
bin=$(cd "$1" && pwd) || exit 1
case $2 in
gpt) command=(train_gpt --steps "${STEPS:-60}" --sample 160) ;;
fashion) command=(train_fashion --steps "${STEPS:-200}") ;;
*)
    echo "demo: no example is called '$2'" >&2
    exit 1
    ;;
esac
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# One run; arguments: its name, then options.
train() {
    local name=$1
    shift
    "$bin/${command[0]}" "${command[@]:1}" --device host --seed 1 --loss-log "$name.log" \
        --save "$name.weights" --report "$name.report" "$@" || {
        echo "demo: training failed" >&2
        exit 1
    }
}

# Compares a kind of file of both runs.
same() {
    if ! cmp "free.$1" "half.$1"; then
        echo "demo: $2 DIFFER" >&2
        exit 1
    fi
    echo "$2: identical, $(wc -c <"free.$1") bytes"
}

# The largest value of a counter over all iterations of a run.
largest() {
    sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" "$1.report" | sort -n | tail -n 1
}

mib() {
    echo $((($1 + 1048575) / 1048576))
}

echo "== 1. without a limit"
train free --budget none --mode off
echo
echo "== 2. in half the memory, mode passive"
train half --budget 50% --mode passive
echo
echo "== 3. the same?"
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
