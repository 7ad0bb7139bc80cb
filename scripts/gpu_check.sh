#!/bin/bash
# scripts/gpu_check.sh [OPTION...]: runs everything that needs a GPU, one part after the other: tests,
# examples whose results must be identical, measurements of the machine, benches. Prints a table, and
# writes it with all numbers as JSON lines.
#
#   --quick        small sizes
#   --minutes N    after N minutes starts no step and ends the one that is running, as skipped
#   --seconds N    the same in seconds
#   --tiny         sizes for testing this script with a fake GPU; times are not judged
#   --bin DIR      uses a folder made by `make gpu-bundle`, and builds nothing
#   --only A,B     runs only these parts (see --list)
#   --call N       one of three shares of a quick run, each of at most nine minutes: 1, 2 or 3
#   --sim          runs the examples on the sim device with a GPU's pages: are their budgets possible?
#   --out DIR      folder for the results (default gpu-results)
#   --patience P   percent of the usual time limit of each step (default 100)
#   --list         lists the parts
#
# Every step has a time limit, and its result is in the file before the next step starts, so the results
# so far are kept if the script is stopped. The folder contains gpu_check.jsonl (results and numbers),
# report.md and report.json (one page of them, by gpu_report.sh),
# gpu_check.log (all output), reports.tar.gz (the reports and losses of all training runs) and cuda.log
# (what CUDA itself logged, from version 12.9 on). A step that fails runs once more with CUDA_LAUNCH_BLOCKING=1,
# so that the log says whether it depends on the order of work on the device.
#
# Exit codes: 0 all passed, 1 something failed, 2 bad usage, 77 there is no GPU or no program for one.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
parts="tests examples strict facts claims kernels facts2 budgets batches pytorch sanitizer" # the most informative first
call_1=tests,examples,strict,facts
call_2=claims,kernels,facts2
call_3=budgets,batches,pytorch,sanitizer
only=$parts
quick=
tiny=
time_limit=0
patience=100
options=$*
bin=
device=cuda
out=gpu-results

usage() {
    sed -n '2,/^set -u/{/^#/s/^# \{0,1\}//p}' "$0"
}

while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=--quick ;;
    --tiny) quick=--quick tiny=1 patience=500 ;; # other tests run at the same time
    --sim) device=sim only="examples strict" ;;
    --minutes | --seconds)
        case ${2:-} in
        '' | *[!0-9]*) echo "$1 ${2:-}: not a number" >&2; exit 2 ;;
        esac
        time_limit=$((10#$2)) # read 08 as a decimal number
        [ "$1" = --minutes ] && time_limit=$((60 * time_limit))
        shift
        ;;
    --bin) bin=$(cd "${2:-}" 2>/dev/null && pwd) || { echo "--bin $2: no such folder" >&2; exit 2; }; shift ;;
    --patience)
        case ${2:-} in
        '' | 0* | *[!0-9]*) echo "--patience ${2:-}: not a percentage" >&2; exit 2 ;;
        esac
        patience=$2
        shift
        ;;
    --only)
        only=${2:-}
        only=${only//,/ }
        [ -n "${only// /}" ] || { echo "--only: which of $parts?" >&2; exit 2; }
        shift
        ;;
    --call)
        case ${2:-} in
        1) only=$call_1 ;;
        2) only=$call_2 ;;
        3) only=$call_3 ;;
        *) echo "--call ${2:-}: 1, 2 or 3" >&2; exit 2 ;;
        esac
        only=${only//,/ }
        quick=--quick
        # The rest of nine minutes is for what a step that hangs takes to end, for the clocks and the page.
        [ "$time_limit" -gt 0 ] || time_limit=500
        shift
        ;;
    --out) out=${2:-}; [ -n "$out" ] || { echo "--out: which folder?" >&2; exit 2; }; shift ;;
    --list) echo "$parts"; exit 0 ;;
    --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done
for part in $only; do
    case " $parts " in
    *" $part "*) ;;
    *) echo "--only $part: there is no such part; choose from $parts" >&2; exit 2 ;;
    esac
done

original_path=${LD_LIBRARY_PATH:-}
work=$(mktemp -d) || exit 1
keep=$work/keep # what goes into reports.tar.gz
mkdir "$keep"

# Keeps the reports and writes the page, also for an interrupted run.
finish() {
    if [ -n "${json:-}" ]; then
        tar czf "$out/reports.tar.gz" -C "$work" keep
        bash "$page" "$out" >"$out/report.md"
        bash "$page" --json "$out" >"$out/report.json"
    fi
    rm -rf "$work"
}
trap finish EXIT
here=$(cd "$(dirname "$0")" && pwd)
page=$here/gpu_report.sh
# shellcheck source=scripts/gpu_libraries.sh
. "$here/gpu_libraries.sh" || exit 1
if [ -z "$bin" ]; then
    commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null)
    programs=$root/build/bin
    tests=$root/build/tests
    helpers=$root/bench/gpu
    data=$root/build/data
    fashion=/usr/share/datasets/fashion-mnist
else
    commit=$(cat "$bin/commit" 2>/dev/null)
    programs=$bin/bin
    tests=$bin/bin
    helpers=$bin/bin
    data=$bin/data
    fashion=$bin/data/fashion
    chmod +x "$bin"/bin/* 2>/dev/null # copying may have lost the permission
    use_libraries "$bin" "$work/lib"
fi

find_cublas "$original_path"

probe() {
    if [ ! -x "$programs/gpu_facts" ]; then
        echo "skipped: $programs has no gpu_facts, which is built only if nvcc is installed"
        exit 77
    fi
    machine=$(timeout -k 5 120 "$programs/gpu_facts" --probe 2>&1)
    code=$?
    echo "$machine"
    case $code in
    0) ;;
    77) exit 77 ;;
    *) echo "FAILED: gpu_facts --probe: exit code $code"; exit 1 ;;
    esac
}

# The examples need cuBLAS: which one do they find?
cublas='not needed'
has_cublas=true
if [ $device = sim ]; then
    machine="the sim device"
    export CAPUCHIN_PAGE=2MiB
else
    probe
    cublas=$(timeout -k 5 60 "$programs/gpu_facts" --cublas 2>&1) || has_cublas=false
    cublas=${cublas##*$'\n'}
    echo "cuBLAS: $cublas"
fi
data=$(ls "$data"/*.txt 2>/dev/null | head -n 1)
# Pinned memory cannot be swapped out, so training never takes more than this share of the machine's.
export CAPUCHIN_HOST_BUDGET=${CAPUCHIN_HOST_BUDGET:-$(awk '/MemAvailable/ { printf "%.0f", $2 * 1024 * 0.4 }' /proc/meminfo)}

mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
json=$out/gpu_check.jsonl
logs=$out/gpu_check.log
: >"$json" && echo "$machine" >"$logs" || exit 1
export CUDA_LOG_FILE=${CUDA_LOG_FILE:-$out/cuda.log}
# The machine, without which the numbers mean nothing.
host="Linux $(uname -r), $(nproc) cores, $(awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo) MiB"
gpu=$(timeout -k 5 20 nvidia-smi --format=csv,noheader --query-gpu=driver_version,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,clocks.sm,clocks.max.sm,clocks.mem,power.limit 2>/dev/null)
echo "$host; $gpu" | tee -a "$logs"
failed=0
passed=0
skipped=0
failures=

text_of() {
    tr -d '\\"\n' <<<"$1" | LC_ALL=C tr -c '[:print:]' ' '
}

printf '{"machine":"%s","host":"%s","gpu":"%s","bundle":%s,"date":"%s","commit":"%s","options":"%s","cublas":"%s"}\n' \
    "$(text_of "$machine")" "$(text_of "$host")" "$(text_of "$gpu")" "$([ -n "$bin" ] && echo true || echo false)" \
    "$(date -u +%F)" "$(text_of "$commit")" "$(text_of "$options")" "$(text_of "$cublas")" >>"$json"

# report PART NAME RESULT SECONDS DETAIL: prints a line of the table and writes one to the file.
report() {
    printf '%-10s %-44s %-8s %6s s  %s\n' "$1" "$2" "$3" "$4" "$5"
    printf '{"part":"%s","name":"%s","result":"%s","seconds":%s,"detail":"%s"}\n' \
        "$1" "$(text_of "$2")" "$3" "$4" "$(text_of "$5")" >>"$json"
    case $3 in
    ok) passed=$((passed + 1)) ;;
    skipped) skipped=$((skipped + 1)) ;;
    *)
        failed=$((failed + 1))
        failures="$failures
  $1: $2: $5"
        ;;
    esac
}

# elapsed: prints how many seconds have passed. A test that replaces `timeout` adds what commands would
# take, in a file.
elapsed() {
    local more=0

    [ -z "${CHECK_CLOCK:-}" ] || more=$(<"$CHECK_CLOCK")
    echo $((SECONDS + more))
}

# is_over: the time is up.
is_over() {
    [ "$time_limit" -gt 0 ] && [ "$(elapsed)" -ge "$time_limit" ]
}

# limit SECONDS: prints the given time, or the remaining time if that is less.
limit() {
    local left=$((time_limit - $(elapsed)))

    if [ "$time_limit" -eq 0 ] || [ $left -gt "$1" ]; then
        echo "$1"
    else
        echo $((left > 1 ? left : 1))
    fi
}

# bounded SECONDS COMMAND...: runs a command and kills it after that time, even if it hangs in the driver.
bounded() {
    local seconds=$1
    shift

    seconds=$(((seconds * patience + 99) / 100))
    timeout -k 5 "$(limit "$seconds")" "$@"
}

# is_late PART NAME: if the time is up, reports the step as skipped.
is_late() {
    is_over || return 1
    report "$1" "$2" skipped 0 "the time is up"
}

# was_ended PART NAME SECONDS CODE: if the step was ended because the time is up, reports it as skipped.
was_ended() {
    [ "$4" -eq 124 ] || [ "$4" -eq 137 ] || return 1
    is_over || return 1
    report "$1" "$2" skipped "$3" "not finished when the time was up"
}

# check PART NAME COMMAND...: runs a command with its output in the log, and reports the result.
check() {
    local part=$1 name=$2 log=$work/log
    local begin took code
    shift 2

    is_late "$part" "$name" && return
    begin=$(elapsed)
    "$@" >"$log" 2>&1
    code=$?
    took=$(($(elapsed) - begin))
    { echo "== $part: $name: exit code $code"; cat "$log"; } >>"$logs"
    was_ended "$part" "$name" $took $code && return
    case $code in
    0 | 77 | 124 | 137) ;;
    *)
        if ! is_over; then
            CUDA_LAUNCH_BLOCKING=1 "$@" >"$work/again" 2>&1
            { echo "== $part: $name, with blocking launches: exit code $?"; cat "$work/again"; } >>"$logs"
        fi
        ;;
    esac
    case $code in
    0) report "$part" "$name" ok $took "$(tail -n 1 "$log")" ;;
    77) report "$part" "$name" skipped $took "$(tail -n 1 "$log")" ;;
    124 | 137) report "$part" "$name" FAILED $took "not finished within its time limit: $(tail -n 1 "$log" | cut -c 1-120)" ;;
    *) report "$part" "$name" FAILED $took "exit code $code: $(tail -n 1 "$log" | cut -c 1-120)" ;;
    esac
    return $code
}

# unit PART NAME SECONDS PROGRAM: runs a test program. It says after each test how it went, since one that
# is ended for hanging prints no summary.
unit() {
    local code

    rm -f "$work/tap"
    CK_TAP_LOG_FILE_NAME=$work/tap CK_DEFAULT_TIMEOUT=0 check "$1" "$2" bounded "$3" "$4"
    code=$?
    [ $code -eq 0 ] || cat "$work/tap" >>"$logs" 2>/dev/null
    return $code
}

# Small shapes only: the host computes the expected results on one core.
part_tests() {
    local test found=''

    for test in "$tests"/*_gpu_test; do
        [ -x "$test" ] || continue
        found=1
        KERNELS_SMALL=1 unit tests "${test##*/}" 200 "$test"
    done
    [ -n "$found" ] || report tests all FAILED 0 "no test in $tests"
}

part_kernels() {
    local arithmetic

    unit kernels "kernels_gpu_test, large shapes" 200 "$tests/kernels_gpu_test"
    for arithmetic in tf32 bf16; do
        KERNELS_MATMUL=$arithmetic CK_RUN_CASE=products \
            unit kernels "kernels_gpu_test, $arithmetic products" 120 "$tests/kernels_gpu_test"
    done
}

# One run of an example.
train() {
    local code

    bounded 120 "$@" >train.out 2>&1
    code=$?
    [ $code -eq 0 ] || cat train.out
    return $code
}

# What the library claims, one line per claim.
part_claims() {
    local begin code name verdict detail
    local options=()

    is_late claims all && return
    [ -n "$tiny" ] && options=(--layers 1 --channels 64 --heads 2 --seq 16 --vocab 256 --batch 2
        --steps 1 --settle 4 --percent 75 --untimed)
    begin=$(elapsed)
    bounded 240 "$programs/gpu_claims" --json "${options[@]}" >"$work/claims.jsonl" 2>"$work/log"
    code=$?
    cat "$work/log" "$work/claims.jsonl" >>"$logs"
    cat "$work/claims.jsonl" >>"$json"
    sed -n 's/{"claim":"\([^"]*\)","value":\([^,]*\),"limit":\([^,]*\),"unit":"\([^"]*\)","verdict":"\([^"]*\)","detail":"\(.*\)"}/\1|\5|\2 \4 (limit \3); \6/p' \
        "$work/claims.jsonl" >"$work/claims"
    while IFS='|' read -r name verdict detail; do
        case $verdict in
        holds) report claims "$name" ok 0 "$detail" ;;
        BROKEN) report claims "$name" FAILED 0 "$detail" ;;
        *) report claims "$name" skipped 0 "$verdict: $detail" ;;
        esac
    done <"$work/claims"
    was_ended claims gpu_claims $(($(elapsed) - begin)) $code && return
    # Warnings of libraries are not failures: OpenBLAS prints one if a virtual machine hides its caches.
    if [ $code -gt 1 ] || grep -q '^gpu_claims:' "$work/log" || [ ! -s "$work/claims" ]; then
        report claims gpu_claims FAILED $(($(elapsed) - begin)) "exit code $code: $(tail -n 1 "$work/log")"
    else
        report claims gpu_claims ok $(($(elapsed) - begin)) "$(wc -l <"$work/claims") claims checked"
    fi
}

# agree FOLDER MODE BUDGET COMMAND...: compares losses and weights with those of a run without a limit.
# Makes that run first if it does not exist yet.
agree() {
    local folder=$1 mode=$2 budget=$3
    shift 3

    mkdir -p "$folder" && cd "$folder" || return 1
    if [ ! -e off.weights ]; then
        train "$@" --device "$device" --mode off --loss-log off.log --save off.weights || return
        train "$@" --device "$device" --mode off --loss-log again.log || return
        cmp off.log again.log || { echo "two runs without a limit differ"; return 1; }
        grep -qiE "nan|inf" off.log && { echo "losses that are no numbers"; return 1; }
    fi
    [ "$mode" = guided ] && set -- "$@" --wait-for-plan
    train "$@" --device "$device" --mode "$mode" --budget "$budget" --loss-log limited.log \
        --save limited.weights --report limited.report || return
    keep_run "${folder##*/}-$mode-${budget%\%}"
    if ! cmp off.log limited.log || ! cmp off.weights limited.weights; then
        diff off.log limited.log
        cat train.out
        tail -n 2 limited.report
        return 1
    fi
    grep -q '"evict_count":[1-9]' limited.report || { echo "nothing was evicted"; return 1; }
    [ "$mode" != guided ] || followed limited.report || return 1
    grep '^peak' train.out
}

# keep_run NAME: keeps what the run in the current folder has reported.
keep_run() {
    mkdir -p "$keep/$1" && cp limited.report limited.log off.log train.out "$keep/$1/"
}

# followed REPORT: some iteration followed a plan to its end. Otherwise guided mode was not tested at all.
followed() {
    grep '"mode":"guided"' "$1" | grep -q '"diverged":0' && return
    echo "no iteration followed a plan: $(grep -o '"plan_error":"[^"]*"' "$1" | tail -n 1)"
    return 1
}

gpt=("$programs/train_gpt" --data "$data" --layers 6 --channels 512 --heads 8 --seq 256
    --batch 8 --steps 8)
cnn=("$programs/train_fashion" --data "$fashion" --steps 30 --batch 256 --test-images 512)
budgets="75% 55%"
smallest=45%
if [ $device = sim ]; then # later options count; every iteration needs as much as the first two
    gpt+=(--steps 4)
    cnn+=(--steps 4)
fi
if [ -n "$tiny" ]; then
    gpt=("$programs/train_gpt" --data "$data" --layers 2 --channels 64 --heads 2 --seq 16 --batch 2
        --update asap --steps 3)
    cnn=("$programs/train_fashion" --data "$fashion" --steps 2 --batch 8 --test-images 8)
    budgets=75%
    smallest=70%
fi

part_examples() {
    local budget mode

    for mode in passive guided; do
        for budget in $budgets; do
            check examples "train_gpt, $mode, $budget" agree "$work/gpt" $mode $budget "${gpt[@]}"
        done
        check examples "train_gpt asap, accumulate, $mode, $smallest" agree "$work/gpt-asap" $mode \
            $smallest "${gpt[@]}" --update asap --accumulate 2
        check examples "train_gpt bf16, asap, $mode, 75%" agree "$work/gpt-bf16" $mode 75% \
            "${gpt[@]}" --update asap --dtype bf16
        [ -n "$quick" ] || check examples "train_gpt fused, asap, $mode, 75%" agree "$work/gpt-fused" $mode 75% \
            "${gpt[@]}" --update asap --attention fused
        [ -e "$fashion" ] || { report examples "train_fashion, $mode" skipped 0 "no $fashion"; continue; }
        check examples "train_fashion, $mode, 60%" agree "$work/fashion" $mode 60% \
            "${cnn[@]}"
        # A quick run tests bf16 only in the tests of the kernels.
        [ -n "$quick" ] || check examples "train_fashion bf16, $mode, 70%" agree \
            "$work/fashion-bf16" $mode 70% "${cnn[@]}" --dtype bf16
    done
    check examples "drop_in_cuda, 160 MiB" drop_in
}

drop_in() {
    cd "$work" || return 1
    [ $device = cuda ] || { echo "it computes, which the sim device does not"; return 77; }
    [ -x "$programs/drop_in_cuda_plain" ] || { echo "not built: no cuBLAS to link"; return 77; }
    bounded 60 "$programs/drop_in_cuda_plain" >plain.out || return 1
    CAPUCHIN_BUDGET=160MiB bounded 60 "$programs/drop_in_cuda_drop_in" >drop_in.out || return 1
    cmp plain.out drop_in.out && tail -n 1 drop_in.out
}

part_strict() {
    local mode budget=60%

    [ -n "$tiny" ] && budget=$budgets
    for mode in passive guided; do
        check strict "train_gpt, $mode, $budget, strict" agree "$work/gpt" $mode $budget \
            "${gpt[@]}" --strict
    done
}

# sanitize SECONDS KIND [OPTION...] COMMAND...: what the tool cannot check on this device, or not in time,
# has not failed.
sanitize() {
    local seconds=$1 kind=$2 code
    shift 2

    bounded "$seconds" "$sanitizer" --tool "$kind" --error-exitcode 1 --report-api-errors no "$@" \
        >sanitizer.out 2>&1
    code=$?
    cat sanitizer.out
    [ $code -ne 124 ] && [ $code -ne 137 ] || { echo "not finished within $seconds s"; return 77; }
    ! grep -q 'Device not supported' sanitizer.out || { echo "the device is not supported"; return 77; }
    return $code
}

part_sanitizer() {
    local kind exclude=

    sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
    if [ ! -x "$sanitizer" ]; then
        report sanitizer compute-sanitizer skipped 0 "it is not installed"
        return
    fi
    cd "$work" || return
    # Checking cuBLAS's kernels for races takes long and says nothing about ours.
    "$sanitizer" --help 2>/dev/null | grep -q -e --kernel-regex-exclude &&
        exclude="--kernel-regex-exclude kernel_substring=gemm"
    # Small shapes only, since a checked kernel is a hundred times slower.
    KERNELS_SMALL=1 CK_DEFAULT_TIMEOUT=0 check sanitizer "kernels, memcheck" sanitize 120 memcheck \
        "$tests/kernels_gpu_test"
    for kind in $([ -n "$quick" ] || echo racecheck synccheck); do
        # shellcheck disable=SC2086 # nothing, or an option and its value
        KERNELS_SMALL=1 CK_DEFAULT_TIMEOUT=0 check sanitizer "kernels, $kind" sanitize 120 "$kind" \
            $exclude "$tests/kernels_gpu_test"
    done
    check sanitizer "train_gpt, passive, memcheck" sanitize 120 memcheck "${gpt[@]}" --device cuda \
        --mode passive --budget 60% --steps 1
}

# measure PART NUMBER...: one process per measurement, so that one that hangs or breaks the device affects no other.
measure() {
    local part=$1 number begin code lines
    shift

    for number; do
        is_late "$part" "measurement $number" && continue
        begin=$(elapsed)
        # shellcheck disable=SC2086 # nothing, or an option
        bounded 90 "$programs/gpu_facts" --json $quick $number >"$work/facts.jsonl" 2>>"$logs"
        code=$?
        # Prints a table and keeps the JSON lines.
        sed -n 's/{"fact":\([0-9]*\),"what":"\([^"]*\)","value":\([^,]*\),"unit":"\([^"]*\)"}/\1|\2|\3 \4/p
                s/{"fact":\([0-9]*\),"what":"\([^"]*\)","text":"\([^"]*\)"}/\1|\2|\3/p' "$work/facts.jsonl" |
            awk -F'|' '$1 > 0 { printf "%4d  %-64s %s\n", $1, $2, $3 }' | tee -a "$logs"
        grep -v '"fact":0,' "$work/facts.jsonl" >>"$json"
        lines=$(grep -c . "$work/facts.jsonl")
        was_ended "$part" "measurement $number" $(($(elapsed) - begin)) $code && continue
        if [ $code -eq 0 ]; then
            report "$part" "measurement $number" ok $(($(elapsed) - begin)) "$lines lines"
        else
            report "$part" "measurement $number" FAILED $(($(elapsed) - begin)) "exit code $code"
        fi
    done
}

# First those that decide how the device layer has to work.
part_facts() {
    measure facts 1 7 5 3
}

part_facts2() {
    measure facts2 6 8 2 4 9 10 12 13
}

# bench PART NAME SCRIPT...: runs a script that prints a table and appends JSON lines to a given file.
bench() {
    local part=$1 name=$2 begin code
    shift 2

    is_late "$part" "$name" && return
    begin=$(elapsed)
    echo "== $part: $name" >>"$logs"
    # shellcheck disable=SC2086 # nothing, or an option
    bounded 2400 "$@" "$json" $quick 2>"$work/log" | tee -a "$logs"
    code=${PIPESTATUS[0]}
    cat "$work/log" >>"$logs"
    was_ended "$part" "$name" $(($(elapsed) - begin)) "$code" && return
    case $code in
    0) report "$part" "$name" ok $(($(elapsed) - begin)) "" ;;
    77) report "$part" "$name" skipped $(($(elapsed) - begin)) "$(tail -n 1 "$work/log")" ;;
    *) report "$part" "$name" FAILED $(($(elapsed) - begin)) "exit code $code: $(tail -n 1 "$work/log")" ;;
    esac
}

part_budgets() {
    [ -n "$tiny" ] && export MODELS=${TINY_MODELS:-gpt-tiny cnn-tiny} PATIENCE=1000
    bench budgets all "$helpers/budgets.sh" "$programs" "$data"
}

part_batches() {
    [ -n "$tiny" ] && export MODELS=gpt-tiny BUDGET=1300KiB PATIENCE=1000
    [ -e "$bin/batches" ] && export FOUND=$bin/batches # found beforehand
    bench batches all "$helpers/batches.sh" "$programs" "$data"
}

part_pytorch() {
    local model

    is_late pytorch all && return
    if ! LD_LIBRARY_PATH=$original_path bounded 120 python3 -c 'import torch; assert torch.cuda.is_available()' >/dev/null 2>&1; then
        report pytorch all skipped 0 "python3 has no torch that sees the GPU"
        return
    fi
    for model in gpt cnn; do
        bench pytorch $model env LD_LIBRARY_PATH="$original_path" python3 -B "$helpers/pytorch_$model.py"
    done
}

# clocks PART: what the GPU's clocks are now, and what limits them.
clocks() {
    echo "after $1: $(bounded 20 nvidia-smi --format=csv,noheader \
        --query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw,clocks_event_reasons.active 2>/dev/null)" >>"$logs"
}

$has_cublas || report machine cuBLAS FAILED 0 "$cublas"
for part in $only; do
    "part_$part"
    clocks "$part"
done
[ -n "$failures" ] && echo "FAILED:$failures"
echo "$passed passed, $failed failed, $skipped skipped"
echo "$(elapsed) s; numbers in $json, output in $logs, one page in $out/report.md"
[ "$failed" -eq 0 ]
