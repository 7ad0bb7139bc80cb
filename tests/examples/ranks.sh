#!/bin/bash
# Runs train_gpt on several ranks and compares losses, weights and validation losses with one process that
# computes as many replicas without a limit: bit for bit, in guided mode, also in strict mode, with other
# sizes of pieces, and with modes and budgets that differ per rank. A sample (support/effort.sh) has one run
# of the first and of the last kind. Then ranks that do not fit together end, naming what differs.
#
# usage: ranks.sh WORK-FOLDER RANKS-SCRIPT FREE COUNT PROGRAM [OPTION...]
# FREE is the budget of the run without a limit, as for budgets.sh.
set -u
. "$(dirname "$0")/../support/effort.sh"
. "$(dirname "$0")/../support/numbers.sh"
work=$1
ranks=$2
free=$3
count=$4
shift 4
rm -rf "$work" && mkdir -p "$work" || exit 1
command -v mpirun >/dev/null || {
    echo "no mpirun: install openmpi-bin"
    exit 77
}
export KERNELS_THREADS=1

fail() {
    echo "ranks.sh: $*"
    exit 1
}

# validation NAME: what a run printed about validation; mpirun ends lines as a terminal does.
validation() {
    tr -d '\r' <"$work/$1.out" | grep '^validation'
}

"$@" --replicas "$count" --mode off --budget "$free" --loss-log "$work/one.log" --save "$work/one.weights" \
    >"$work/one.out" 2>&1 || fail "the reference failed: $(cat "$work/one.out")"
has_only_numbers "$work/one.log" || fail "the reference has losses that are no numbers"

# run NAME COMMAND...: runs it on all ranks and compares with the reference.
run() {
    name=$1
    shift
    timeout 1000 "$ranks" "$count" "$@" --loss-log "$work/$name.log" --save "$work/$name.weights" \
        --report "$work/$name.%r" >"$work/$name.out" 2>&1 || fail "$name failed: $(cat "$work/$name.out")"
    cmp "$work/one.log" "$work/$name.log" || fail "$name: different losses"
    cmp "$work/one.weights" "$work/$name.weights" || fail "$name: different weights"
    [ "$(validation $name)" = "$(validation one)" ] || fail "$name: different validation: $(validation $name)"
    for ((rank = 0; rank < count; rank++)); do
        grep -q "\"rank\":$rank,\"rank_count\":$count," "$work/$name.$rank" ||
            fail "$name: $name.$rank is not the report of rank $rank"
    done
}

# expect RANK TEXT: checks that a rank's report of the last run has this in the lines of its training.
expect() {
    grep '"label":"train"' "$work/$name.$1" | grep -q "$2" || fail "$name: rank $1 has no $2"
}

run guided "$@" --mode guided --wait-for-plan --budget 60%
for ((rank = 0; rank < count; rank++)); do
    expect $rank '"mode":"guided"'
    expect $rank '"evict_count":[1-9]'
    [ "$count" -lt 2 ] || expect $rank '"exchanged_bytes":[1-9]'
done
if runs_all_cases; then
    run free "$@" --mode passive --budget "$free"
    run passive "$@" --mode passive --budget 50%
    run pieces "$@" --mode guided --budget 80% --bucket 20kB
    run strict "$@" --mode guided --wait-for-plan --budget 60% --strict
    run limit "$@" --mode guided --planner recompute --budget 70% --limit 60
fi

# Rank 0 is guided in little memory, the second one passive in less than it needs, all others free.
cat >"$work/mixed.sh" <<'END'
#!/bin/sh
free=$1
shift
case $OMPI_COMM_WORLD_RANK in
0) exec "$@" --mode guided --wait-for-plan --budget 60% ;;
1) exec "$@" --mode passive --budget 50% ;;
*) exec "$@" --mode off --budget "$free" ;;
esac
END
chmod +x "$work/mixed.sh"
run mixed "$work/mixed.sh" "$free" "$@"
expect 0 '"mode":"guided"'
[ "$count" -lt 2 ] || expect 1 '"evict_count":[1-9]'
[ "$count" -lt 2 ] || ! grep -q '"mode":"guided"' "$work/mixed.1" || fail "rank 1 had a plan"

# refuse TEXT COMMAND...: it fails, instead of waiting for ever, with this text.
refuse() {
    text=$1
    shift
    timeout 100 "$ranks" "$count" "$@" >"$work/out" 2>&1
    code=$?
    [ $code -ne 0 ] && [ $code -ne 124 ] || fail "$*: exit code $code: $(cat "$work/out")"
    grep -q -e "$text" "$work/out" || fail "$*: no '$text' in $(cat "$work/out")"
}

if [ "$count" -gt 1 ]; then
    cat >"$work/unequal.sh" <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exec "$@" --steps 2
exec "$@" --steps 3
END
    chmod +x "$work/unequal.sh"
    refuse "collectives differ: rank 0 has allreduce 'gradients' .* rank 1 has allreduce 'loss'" "$work/unequal.sh" "$@" --budget "$free"
    refuse "each of the $count ranks computes one" "$@" --replicas "$count"
    if runs_all_cases; then
        refuse "put %r" "$@" --budget "$free" --report "$work/same"
        refuse "below the floor" "$@" --budget 16KiB
        refuse "not a multiple of the number of ranks" "$@" --batch $((count + 1))
    fi
fi
echo "the same losses and weights on $count ranks as in one process"
