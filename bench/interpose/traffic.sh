#!/bin/bash
# traffic.sh [--json] [BUILD]: what budgets cost unmodified programs in copies, over the driver of the tests: KiB per
# training step that are copied to the host and back, and that are overwritten without being copied back. For the
# programs of examples/unmodified within 75, 55 and 40 % of what they allocate. In passive mode: the difference between
# a run of 7 steps and one of 3; it is the same each time. In guided mode: the median of the guided iterations of a run
# of 13, with links of 64 MiB/s in each direction. What a run prints must be the same as alone.
set -u
json=
[ "${1:-}" != --json ] || { json=1; shift; }
build=${1:-build}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$build/tests/ptx/lib PTX_DRIVER_FOREIGN=1 CAPUCHIN_DEVICE=host CAPUCHIN_WAIT_FOR_PLAN=1 \
    CAPUCHIN_D2H=64MiB CAPUCHIN_H2D=64MiB

fail() {
    echo "$*" >&2
    cat "$work/messages" >&2 2>/dev/null
    exit 1
}

# reported TEXT: the number that follows it in the report.
reported() {
    sed -n "s/^$1\([0-9]*\).*/\1/p" "$work/report"
}

# run STEPS OPTION...: one run under the command. False: the budget is below the floor.
run() {
    local steps=$1
    shift
    [ -e "$work/alone.$steps" ] || "$path" "$steps" >"$work/alone.$steps" || fail "$program alone: exit code $?"
    if ! "$build/bin/capuchin" run --report "$work/report" "$@" -- "$path" "$steps" >"$work/output" 2>"$work/messages"
    then
        grep -q 'does not fit the budget' "$work/messages" || fail "$program $*: it failed"
        return 1
    fi
    cmp -s "$work/alone.$steps" "$work/output" || fail "$program $*: the output differs"
}

# median KEY: of that counter in guided iterations; nothing: there are none.
median() {
    grep '"mode":"guided",.*"diverged":0,' "$work/iterations" | sed "s/.*\"$1\":\([0-9]*\),.*/\1/" | sort -n |
        awk '{ value[NR] = $1 } END { if (NR > 0) print value[int((NR + 1) / 2)] }'
}

# row MODE OUT BACK OVERWRITTEN: bytes per step; no OUT: there is nothing to say.
row() {
    if [ -n "$json" ]; then
        [ -z "$2" ] || printf '{"program":"%s","percent":%d,"mode":"%s","out_bytes":%d,"back_bytes":%d%s}\n' \
            "$program" "$percent" "$1" "$2" "$3" "${4:+,\"overwritten_bytes\":$4}"
    elif [ -z "$2" ]; then
        printf '%-10s  %4d %%  %-7s  %8s  %8s  %11s\n' "$program" "$percent" "$1" - - -
    else
        printf '%-10s  %4d %%  %-7s  %8d  %8d  %11s\n' "$program" "$percent" "$1" $(($2 / 1024)) $(($3 / 1024)) \
            "${4:+$(($4 / 1024))}"
    fi
}

[ -n "$json" ] || echo 'program     budget  mode     KiB out  KiB back  overwritten'
for program in classifier gpt; do
    path=$build/tests/ptx/$program
    rm -f "$work"/alone.*
    run 3 --mode off || fail "$program: --mode off"
    peak=$(reported 'allocations at the end: [0-9]* bytes, at most ')
    for percent in 75 55 40; do
        budget=$((peak * percent / 100))
        if run 3 --budget "$budget"; then
            out=$(reported 'copied to the host: ')
            back=$(reported 'copied back: ')
            overwritten=$(reported 'overwritten without being copied back: ')
            run 7 --budget "$budget" || fail "$program: only the shorter run fits $budget bytes"
            row passive $((($(reported 'copied to the host: ') - out) / 4)) \
                $((($(reported 'copied back: ') - back) / 4)) \
                $((($(reported 'overwritten without being copied back: ') - overwritten) / 4))
        else
            row passive ''
        fi
        if run 13 --mode guided --iterations "$work/iterations" --budget "$budget"; then
            row guided "$(median evicted_bytes)" "$(median prefetched_bytes)"
        else
            row guided ''
        fi
    done
done
