#!/bin/bash
# first.sh ROOT PROGRAMS WORK: runs gpu_first.sh from end to end without a GPU: over the fake runtime and the
# test driver, where every step must pass; with programs that hang or compute something else; and with the
# programs for a GPU on a machine without a driver.
set -u
. "$(dirname "$0")/../../support/effort.sh"
root=$1 programs=$2 work=$3
bundle=$work/bundle bin=$work/bundle/bin out=$work/out
driver=$programs/tests/ptx/lib

fail() {
    echo "first.sh: $*"
    cat "$work/log" 2>/dev/null
    exit 1
}

# script NAME LINE...: an executable file in the bundle.
script() {
    local path=$bin/$1
    shift

    rm -f "$path"
    printf '%s\n' '#!/bin/bash' "$@" >"$path" && chmod +x "$path"
}

rm -rf "$work" && mkdir -p "$bundle"/{bin,lib/capuchin,data} "$work/tools" || exit 1
ln -s "$programs"/data/*.txt "$bundle/data/"
ln -s "$root"/bench/gpu/*.sh "$root/scripts/gpu_libraries.sh" "$bin/"
ln -s "$programs/lib/capuchin/libcapuchin-interpose.so" "$bundle/lib/capuchin/"
echo "nothing" >"$bundle/needs"

# first SECONDS [NAME=VALUE...]: the result is in $work/log, $out and $code.
first() {
    local seconds=$1 begin=$SECONDS
    shift

    rm -rf "$out"
    env PATH="$work/tools:$PATH" "$@" "$root/scripts/gpu_first.sh" "$bundle" "$out" "$seconds" >"$work/log" 2>&1
    code=$?
    [ $((SECONDS - begin)) -le $((seconds + 5)) ] || fail "it took $((SECONDS - begin)) s, of $seconds"
    [ -s "$out/all.log" ] && tar tzf "$out/logs.tar.gz" >"$work/kept" || fail "it left no logs"
}

# ended RESULT NAME [TEXT]: so the step ended, and its line has the text.
ended() {
    grep -qE "^$2	$1	[0-9]+	.*${3:-}" "$out/summary.tsv" || fail "$2 is not $1 (${3:-})"
}

# Over the fake runtime and the test driver. The kernels and the device contract have tests of their own.
fake=(TINY=1 CAPUCHIN_PAGE=16KiB CAPUCHIN_DEVICE=host PTX_DRIVER_FOREIGN=1 LD_LIBRARY_PATH="$driver"
    CAPU_RUN_DRIVER="$driver/libcuda.so.1" KERNELS_CUBLAS="$programs/lib/libfake_cublas.so")
for program in train_gpt gpu_claims gpu_facts; do
    ln -s "$programs/tests/${program}_on_fake" "$bin/$program" || exit 1
done
ln -s "$programs/tests/ptx/classifier" "$bin/unmodified_classifier"
ln -s "$programs/tests/ptx/gpt" "$bin/unmodified_gpt"
ln -s "$programs/tests/api_enqueued_test" "$bin/api_gpu_test"
script capuchin 'unset CAPUCHIN_PAGE' "exec '$programs/bin/capuchin' \"\$@\""
some=1
runs_all_cases && some=
script device_contract_gpu_test "${some:+export CK_RUN_CASE=cuda}" "exec '$programs/tests/device_contract_cuda_test'"
script kernels_gpu_test "${some:+export CK_RUN_CASE=products}" "export KERNELS_CUBLAS='$driver/libcublas.so.13'" \
    "exec '$programs/tests/kernels_on_ptx_test'"
# shellcheck disable=SC2016 # the tool's own arguments
printf '%s\n' '#!/bin/bash' 'while [ "${1#--}" != "$1" ]; do shift $((1 + ($# > 1 && ${#1} < 99))); done' 'exec "$@"' \
    >"$work/tools/compute-sanitizer" && chmod +x "$work/tools/compute-sanitizer"
first 1500 "${fake[@]}"
[ $code -eq 0 ] || fail "not every step passed"
[ "$(cut -f2 "$out/summary.tsv" | sort -u | xargs)" = "ok skipped" ] || fail "not every step passed"
ended skipped 42-drop-in 'not in the bundle'
[ "$(grep -c skipped "$out/summary.tsv")" -eq 1 ] || fail "more than one step was skipped"
ended ok 04-api ' tests passed, 0 failed'
for program in classifier gpt; do
    ended ok 13-unmodified_$program-passive 'the same bytes'
    ended ok 14-unmodified_$program-guided 'the same bytes; .*guided iterations: [1-9]'
done
for number in 1 2 3 4 5 6 7 8 9 10 12 13; do
    grep -q "\"fact\":$number," "$out/facts.jsonl" || fail "no fact $number"
done
grep -q '"bench":"budgets".*"mode":"guided"' "$out/facts.jsonl" && grep -q '"claim"' "$out/facts.jsonl" ||
    fail "no measurements of training"
! grep -v '^{.*}$' "$out/facts.jsonl" || fail "not JSON"
for file in passive.report 04-api.tap unmodified_gpt.guided.report unmodified_gpt.iterations; do
    grep -q "/$file$" "$work/kept" || fail "$file was not kept"
done
tail -n 1 "$work/log" | grep -q '; nothing to run again$' || fail "something is to be run again"

# Every budget of training is possible with the pages of a GPU, in the sizes for one.
if runs_all_cases; then
    ln -sf "$programs/bin/train_gpt" "$bin/train_gpt"
    first 100 DEVICE=sim CAPUCHIN_PAGE=2MiB CAPUCHIN_EFFORT=quick STEPS="02 06 07 41 50"
    [ $code -eq 0 ] || fail "a budget is not possible with the pages of a GPU"
    [ "$(wc -l <"$out/summary.tsv")" -eq 5 ] || fail "it ran other steps"
fi

# Other results, by training and by a program: both are looked into, and what is to be run again is named.
# shellcheck disable=SC2016 # expanded by the scripts
script train_gpt '"'"$programs"'/tests/train_gpt_on_fake" "$@" || exit' \
    'case "$*" in *"/passive.loss"*) echo "another loss" >>"'"$work"'/more"; for word; do case $word in */passive.loss) echo "another loss" >>"$word" ;; esac; done ;; esac'
# shellcheck disable=SC2016
script capuchin 'echo "allocations at the end: 0 bytes, at most 1000000 bytes" >"$3"' 'echo "other bytes"'
first 60 "${fake[@]}" STEPS="06 07 11-unmodified_classifier 13-unmodified_classifier"
[ $code -eq 1 ] || fail "it passed with other results"
ended FAILED 06-train-passive
ended FAILED 06-why
ended ok 07-train-guided 'the same bits'
ended ok 11-unmodified_classifier-forward 'the same bytes'
ended FAILED 13-unmodified_classifier-passive
ended FAILED 13-unmodified_classifier-why
grep -q '^> another loss' "$out/all.log" && grep -q '^> other bytes' "$out/all.log" || fail "the log lacks the differences"
[ "$(wc -l <"$out/summary.tsv")" -eq 6 ] || fail "it ran other steps"
tail -n 1 "$work/log" | grep -q 'run again: STEPS="06-train-passive 13-unmodified_classifier-passive"$' ||
    fail "it does not say what to run again"

# Programs that do not start, and a step that hangs: all ends in time, and each step has a line.
for program in train_gpt unmodified_classifier unmodified_gpt gpu_claims kernels_gpu_test; do
    script $program 'echo "it does not start" >&2' 'exit 1'
done
script api_gpu_test 'sleep 100'
script gpu_facts 'exit 0'
first 14 "${fake[@]}" STEPS="02 04 4 5"
[ $code -eq 1 ] || fail "it passed with programs that do not start"
ended FAILED 02-plug-in 'it does not start'
ended FAILED 02-why
ended LATE 04-api
ended skipped 50-memcheck 'the time is up'
[ "$(wc -l <"$out/summary.tsv")" -eq 15 ] || fail "some step has no line"
tail -n 1 "$work/log" | grep -q 'STEPS="02-plug-in 04-api .* 50-memcheck"$' || fail "it does not say what to run again"

# The programs for a GPU, without a driver: skipped or failed, each with the reason.
if [ -x "$programs/bin/gpu_facts" ] && [ -x "$programs/tests/ptx/gpt_nvcc" ] && ! "$programs/bin/gpu_facts" --probe >/dev/null; then
    rm -rf "$bin" "$work/tools/compute-sanitizer" && mkdir "$bin" || exit 1
    ln -s "$programs"/bin/{capuchin,gpu_claims,gpu_facts,train_cnn,train_gpt} "$programs"/bin/drop_in_cuda_* \
        "$programs"/tests/*_gpu_test "$root"/bench/gpu/*.sh "$root/scripts/gpu_libraries.sh" "$bin/"
    ln -s "$programs/tests/ptx/classifier_nvcc" "$bin/unmodified_classifier"
    ln -s "$programs/tests/ptx/gpt_nvcc" "$bin/unmodified_gpt"
    first 60 TINY=1
    [ $code -eq 1 ] || fail "it passed without a driver"
    ended ok 00-machine
    for step in 01-probe 03-contract 04-api 20-fact-1 31-claims 40-kernels 43-fact-12; do
        ended skipped $step 'GPU|no CUDA device'
    done
    for step in 02-plug-in 05-train-off 06-train-passive 07-train-guided 30-budgets 41-strict; do
        ended FAILED $step 'no CUDA device'
    done
    for program in unmodified_classifier unmodified_gpt; do
        ended FAILED 10-$program-alone 'CUDA driver version'
        ended FAILED 11-$program-forward 'CUDA driver version'
        ended FAILED 12-$program-off 'there is no CUDA driver'
        ended FAILED 14-$program-guided 'did not run without a limit'
    done
    ended FAILED 42-drop-in
fi

# An argument that is wrong is bad usage.
for arguments in "" "$work/nowhere $out" "$bundle $out 0" "$bundle $out soon"; do
    # shellcheck disable=SC2086 # words on purpose
    "$root/scripts/gpu_first.sh" $arguments >"$work/log" 2>&1
    [ $? -eq 2 ] || fail "'$arguments' is not bad usage"
done
echo "each step ended as it should"
