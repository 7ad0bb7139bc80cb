#!/bin/bash
# scripts/gpu_first.sh BUNDLE OUT [SECONDS]: one run on a GPU that is there for a short time: what is worth
# most comes first. BUNDLE is the folder that `make gpu-bundle` makes; nothing is compiled. Takes at most
# SECONDS (default 470).
#
# Each step has a time limit, which shrinks to the time that is left, and no step stops another. Four kinds
# of failure are looked into at once, since there may be no second run: no plug-in, other results when
# training under a budget, a program that does not start over the library for unmodified programs, and
# other results of such a program under a budget.
#
# OUT gets summary.tsv (a line per step: name, result, seconds, last line of its output), all.log (the end of
# all output), facts.jsonl (measurements) and logs.tar.gz (logs, reports, results test by test), each renewed
# after every step. The last line names the steps to run again: STEPS="NAME..." runs only those whose names
# begin so.
#
# What the machine has to have is in BUNDLE/needs: a C library, a driver, and cuBLAS, which is looked for in
# the toolkit and among Python's packages. CAPUCHIN_HOST_BUDGET (default 40GiB) limits pinned memory. Changes
# nothing on the GPU, and uses no managed memory. For tests without a GPU: TINY=1 has small sizes, and
# DEVICE=sim trains on the sim device.
#
# Exit codes: 0 every step passed or was skipped with a reason, 1 not so, 2 bad usage.
set -u
if [ $# -lt 2 ] || [ ! -d "$1/bin" ]; then
    sed -n '2,/^set -u/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
fi
bundle=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" && out=$(cd "$2" && pwd) || exit 2
total=${3:-470}
case $total in '' | 0* | *[!0-9]*) echo "gpu_first.sh: $total: not a number of seconds" >&2; exit 2 ;; esac
work=$(mktemp -d) || exit 2
bin=$bundle/bin keep=$work/logs
mkdir "$keep"
summary=$out/summary.tsv all=$out/all.log facts=$out/facts.jsonl
: >"$summary" && : >"$all" && : >"$facts" || exit 2
chmod -R u+rwX,a+x "$bin" 2>/dev/null # copying may have lost the permission
original_path=${LD_LIBRARY_PATH:-}
# shellcheck source=scripts/gpu_libraries.sh
. "$bin/gpu_libraries.sh" || exit 2
use_libraries "$bundle" "$work/lib"
find_cublas "$original_path"
text=$(ls "$bundle"/data/*.txt 2>/dev/null | head -n 1)
export CAPUCHIN_HOST_BUDGET=${CAPUCHIN_HOST_BUDGET:-40GiB} CAPUCHIN_WAIT_FOR_PLAN=1
export CUDA_LOG_FILE=$keep/cuda.log
# Without persistence, a GPU that no process has open is brought up again for each process.
[ -w /dev/nvidia0 ] && exec 9<>/dev/nvidia0

pack() {
    tar czf "$work/packed" -C "$work" logs 2>/dev/null && mv "$work/packed" "$out/logs.tar.gz"
}
trap 'pack; rm -rf "$work"' EXIT
trap 'exit 143' TERM INT

# The last seconds are for a step that does not end at once, and for the logs.
left() {
    echo $((total - 5 - SECONDS))
}

# results FILE: which tests of a suite passed; nothing if there is no such file.
results() {
    [ -s "$1" ] && awk -F: '/^ok / { ok++ } /^not ok / { bad++; names = names " " $3 } NF > 2 { newest = $3 }
        END { printf "%d tests passed, %d failed%s; the newest is %s\n", ok, bad, names, newest }' "$1"
}

# is_wanted NAME: the step is among STEPS, by the beginning of its name.
is_wanted() {
    local begins

    [ -n "${STEPS:-}" ] || return 0
    for begins in $STEPS; do
        case $1 in "$begins"*) return 0 ;; esac
    done
    return 1
}

# step NAME LIMIT COMMAND...: runs a command for at most LIMIT seconds.
failed=
step() {
    local name=$1 limit=$2 code word began=$SECONDS log=$keep/$1.log
    shift 2

    is_wanted "$name" || return 0
    if [ "$(left)" -lt 3 ]; then
        printf '%s\tskipped\t0\tthe time is up\n' "$name" | tee -a "$summary"
        failed="$failed $name"
        return 1
    fi
    [ -z "${TINY:-}" ] || limit=$((20 * limit)) # other programs may run at the same time
    [ "$limit" -le "$(left)" ] || limit=$(left)
    CK_TAP_LOG_FILE_NAME=$keep/$name.tap CK_DEFAULT_TIMEOUT=0 timeout -k 3 "$limit" "$@" >"$log" 2>&1 9<&-
    code=$?
    results "$keep/$name.tap" >>"$log"
    case $code in
    0) word=ok ;;
    77) word=skipped ;;
    124 | 137) word=LATE ;;
    *) word=FAILED ;;
    esac
    case $word:$name in
    *-why) ;;
    LATE:* | FAILED:*) failed="$failed $name" ;;
    esac
    printf '%s\t%s\t%s\t%s\n' "$name" $word $((SECONDS - began)) "$(tail -n 1 "$log" | tr '\t' ' ' | cut -c1-200)" |
        tee -a "$summary"
    { echo "== $name: exit code $code after $((SECONDS - began)) s, of $limit: $*"; tail -c 60000 "$log"; } >>"$all"
    pack
    return $code
}

# why NAME COMMAND...: looks into a failure; at most 60 s for all of them.
spare=60
why() {
    local began=$SECONDS name=$1
    shift

    [ $spare -gt 3 ] || return
    STEPS='' step "$name" $((spare < 20 ? spare : 20)) "$@"
    spare=$((spare - (SECONDS - began)))
}

# The driver, for the library alone; `capuchin run` finds it by itself.
find_driver() {
    local folder

    ldconfig -p 2>/dev/null | awk '$1 == "libcuda.so.1" { print $NF }'
    for folder in ${LD_LIBRARY_PATH//:/ } /usr/local/nvidia/lib64 /usr/local/nvidia/lib; do
        [ ! -e "$folder/libcuda.so.1" ] || readlink -f "$folder/libcuda.so.1"
    done
}
driver=${CAPU_RUN_DRIVER:-$(find_driver | head -n 1)}

# Sizes. Losses and weights of `gpt` are the same to the bit each time.
device=${DEVICE:-cuda}
gpt=(--layers 6 --channels 512 --heads 8 --seq 256 --batch 8 --update asap --steps 8)
smallest=(--layers 1 --channels 64 --heads 2 --seq 32 --batch 2 --steps 1)
small=(--layers 2 --channels 512 --heads 8 --seq 256 --batch 4 --update asap --steps 1)
claims=()
models="gpt-d12 cnn" patience=40 percent=50 program_steps=12
if [ -n "${TINY:-}" ]; then
    gpt=(--layers 2 --channels 64 --heads 2 --seq 16 --batch 2 --update asap --steps 5)
    small=("${gpt[@]}" --steps 1)
    smallest=(--layers 1 --channels 32 --heads 2 --seq 8 --batch 1 --steps 1)
    claims=(--layers 1 --channels 64 --heads 2 --seq 16 --vocab 256 --batch 2 --steps 1 --settle 4
        --percent 75 --untimed)
    models=gpt-tiny patience=1000 percent=70 program_steps=6
fi

machine() {
    local file

    echo "needs: $(tr '\n' ';' <"$bundle/needs")"
    nvidia-smi
    nvidia-smi -q -d CLOCK,PERFORMANCE,PAGE_RETIREMENT 2>/dev/null | head -n 60
    uname -a
    ldd --version | head -n 1
    nproc
    head -n 3 /proc/meminfo
    ls -l /dev/nvidia* /usr/local/nvidia 2>/dev/null
    ldconfig -p | grep -E 'libc\.so|libcuda\.so|libcublas|libcudart|ptxjit'
    nvcc --version 2>/dev/null | tail -n 2
    cat /sys/module/nvidia/parameters/* 2>/dev/null | tr '\n' ' '
    echo "LD_LIBRARY_PATH=$LD_LIBRARY_PATH"
    for file in "$bin"/* "$bundle"/lib/capuchin/*.so "$bundle"/lib/libcapuchin-cuda*; do
        ldd "$file" 2>/dev/null | grep -E 'not found|version .* required' | sed "s|^|$file: |"
    done
    "$bin/gpu_facts" --cublas
    true
}

# base FILE COMMAND...: makes what other steps have made, if only some are run.
base() {
    [ -e "$1" ] || [ -z "${STEPS:-}" ] || "${@:2}" >/dev/null
}

# train NAME OPTION...: trains the GPT, and keeps losses, weights and report under a name.
train() {
    local name=$1
    shift

    "$bin/train_gpt" --data "$text" "${gpt[@]}" --device "$device" --loss-log "$work/$name.loss" --save "$work/$name.weights" \
        --report "$keep/$name.report" "$@"
}

# limited NAME MODE OPTION...: trains in part of the memory; results are those without a limit.
limited() {
    local name=$1 mode=$2 report=$keep/$1.report
    shift 2

    base "$work/off.loss" train off --mode off
    train "$name" --mode "$mode" --budget "$percent%" "$@" || return
    if ! cmp "$work/off.loss" "$work/$name.loss" || ! cmp "$work/off.weights" "$work/$name.weights"; then
        diff "$work/off.loss" "$work/$name.loss"
        return 1
    fi
    grep -q '"evict_count":[1-9]' "$report" || { echo "nothing was evicted"; return 1; }
    if [ "$mode" = guided ] && ! grep '"mode":"guided"' "$report" | grep -q '"diverged":0'; then
        echo "no iteration followed a plan: $(grep -o '"plan_error":"[^"]*"' "$report" | tail -n 1)"
        return 1
    fi
    echo "the same bits; $(tail -n 1 "$report" | grep -oE '"(time_ns|stall_ns|peak_bytes|live_peak_bytes|evicted_bytes|prefetched_bytes)":[0-9a-z]*' | xargs)"
}

# alone PROGRAM: two runs of an unmodified program by itself, which print the same.
alone() {
    "$bin/$1" "$program_steps" >"$work/$1.out" && "$bin/$1" "$program_steps" >"$work/$1.again" &&
        cmp "$work/$1.out" "$work/$1.again" && tail -n 2 "$work/$1.out" | xargs
}

# same PROGRAM NAME: what that run printed is what the program prints alone.
same() {
    base "$work/$1.out" alone "$1"
    cmp "$work/$1.out" "$work/$1.$2" || { diff "$work/$1.out" "$work/$1.$2" | head -n 20; return 1; }
}

# forward PROGRAM [NAME=VALUE...]: over the library, which only forwards all calls.
forward() {
    env "${@:2}" ${driver:+CAPU_RUN_DRIVER="$driver"} LD_PRELOAD="$bundle/lib/capuchin/libcapuchin-interpose.so" \
        "$bin/$1" "$program_steps" >"$work/$1.forward" && same "$1" forward && echo "the same bytes"
}

# under PROGRAM NAME OPTION...: by `capuchin run` with these options.
under() {
    local program=$1 name=$2 report=$keep/$1.$2.report code
    shift 2

    "$bin/capuchin" run --report "$report" "$@" -- "$bin/$program" "$program_steps" >"$work/$program.$name" \
        2>"$work/messages"
    code=$?
    cat "$work/messages"
    grep -E '^(budget|peak|floor|launches|refused|not carried|iterations|guided|stalls|period|copied|slices|taken)' \
        "$report" 2>/dev/null
    [ $code -eq 0 ] || { echo "exit code $code: $(tail -n 1 "$work/messages")"; return 1; }
    same "$program" "$name" || return
    if [ "$name" = guided ] && ! grep -q '^guided iterations: [1-9]' "$report"; then
        echo "no iteration followed a plan"
        return 1
    fi
    echo "the same bytes; $(grep -E '^(peak|copied back|guided iterations):' "$report" | sed 's/ bytes.*//; s/, .*//' | paste -sd, -)"
}

# half PROGRAM: half of what it allocates, and what libraries take besides; 0: not known.
half() {
    local report=$keep/$1.off.report all others

    all=$(sed -n 's/^allocations at the end: [0-9]* bytes, at most \([0-9]*\).*/\1/p' "$report" 2>/dev/null)
    others=$(sed -n 's/^taken by others: .* at most \([0-9]*\).*/\1/p' "$report" 2>/dev/null)
    echo $((${all:-0} / 2 + ${others:-0}))
}

# halved PROGRAM NAME OPTION...: the same in half of the memory.
halved() {
    local budget

    base "$keep/$1.off.report" under "$1" off --mode off
    budget=$(half "$1")
    [ "$budget" -gt 0 ] || { echo "what it needs is not known, since it did not run without a limit"; return 1; }
    under "$@" --budget "$budget"
}

# noted FUNCTION PROGRAM NAME OPTION...: one of these two with a list of operands. Prints its end on failure.
noted() {
    local operands=$work/$2.$3.operands code

    "$@" --operands "$operands"
    code=$?
    if [ $code -ne 0 ] && [ -s "$operands" ]; then
        tail -n 40 "$operands"
    fi
    return $code
}

# Prints its input, and keeps the lines that are JSON.
into_facts() {
    awk -v facts="$facts" '{ print; fflush() } /^\{/ { print >>facts; fflush(facts) }'
}

fact() {
    "$bin/gpu_facts" --json --quick "$1" | into_facts
    return "${PIPESTATUS[0]}"
}

budgets() {
    export MODELS=$models BUDGETS=$percent PATIENCE=$patience
    bash "$bin/budgets.sh" "$bin" "$text" "$facts" --quick
}

check_claims() {
    "$bin/gpu_claims" --json "${claims[@]}" | into_facts
    return "${PIPESTATUS[0]}"
}

drop_in() {
    [ -x "$bin/drop_in_cuda_plain" ] || { echo "not in the bundle"; return 77; }
    "$bin/drop_in_cuda_plain" >"$work/plain" && CAPUCHIN_BUDGET=160MiB "$bin/drop_in_cuda_drop_in" >"$work/drop_in" &&
        cmp "$work/plain" "$work/drop_in" && tail -n 1 "$work/drop_in"
}

memcheck() {
    local tool code
    tool=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

    [ -x "$tool" ] || { echo "compute-sanitizer is not installed"; return 77; }
    "$tool" --tool memcheck --error-exitcode 1 --report-api-errors no "$bin/train_gpt" --data "$text" "${small[@]}" \
        --device "$device" --mode passive --budget 75% >"$work/memcheck" 2>&1
    code=$?
    cat "$work/memcheck"
    ! grep -q 'Device not supported' "$work/memcheck" || { echo "the device is not supported"; return 77; }
    return $code
}

# A step that is a function of this script runs in a shell of its own, so that it can be ended.
{
    declare -f
    declare -p bundle bin work keep facts driver text device gpt small claims models patience percent program_steps
} >"$work/functions"
# shellcheck disable=SC2016 # expanded by that shell
run=(bash -c '. "$0" && "$@"' "$work/functions")
call() {
    step "$1" "$2" "${run[@]}" "${@:3}"
}

call 00-machine 30 machine
step 01-probe 20 "$bin/gpu_facts" --probe
step 02-plug-in 30 "$bin/train_gpt" --data "$text" "${smallest[@]}" --device "$device" --mode off ||
    why 02-why env LD_DEBUG=libs LD_DEBUG_OUTPUT="$keep/02-why.ld" "$bin/train_gpt" --data "$text" "${smallest[@]}" --device "$device" --mode off
step 03-contract 45 "$bin/device_contract_gpu_test"
step 04-api 45 "$bin/api_gpu_test"
call 05-train-off 25 train off --mode off
call 06-train-passive 25 limited passive passive ||
    CUDA_LAUNCH_BLOCKING=1 why 06-why "${run[@]}" limited passive passive
call 07-train-guided 30 limited guided guided
for program in unmodified_classifier unmodified_gpt; do # the static runtime; the shared one and cuBLAS
    call "10-$program-alone" 20 alone $program
    call "11-$program-forward" 15 forward $program ||
        why "11-$program-why" "${run[@]}" forward $program LD_DEBUG=libs LD_DEBUG_OUTPUT="$keep/11-$program-why.ld"
    call "12-$program-off" 15 noted under $program off --mode off
    call "13-$program-passive" 20 halved $program passive ||
        CUDA_LAUNCH_BLOCKING=1 why "13-$program-why" "${run[@]}" noted halved $program passive
    call "14-$program-guided" 20 halved $program guided --mode guided --iterations "$keep/$program.iterations"
done
for number in 1 3 7 5; do call "20-fact-$number" 20 fact $number; done
call 30-budgets 120 budgets
call 31-claims 100 check_claims
KERNELS_SMALL=1 step 40-kernels 60 "$bin/kernels_gpu_test"
call 41-strict 30 limited strict passive --strict
call 42-drop-in 30 drop_in
for number in 13 8 6 2 4 9 10 12; do call "43-fact-$number" 20 fact $number; done
call 50-memcheck 60 memcheck

echo
cut -f1-3 "$summary" | column -t
if [ -n "$failed" ]; then
    echo "$SECONDS s; run again: STEPS=\"${failed# }\""
    exit 1
fi
echo "$SECONDS s; nothing to run again"
