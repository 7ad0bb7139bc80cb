#!/bin/bash
# on_fake.sh ROOT PROGRAMS WORK: runs gpu_check.sh from end to end over the fake GPU, in a folder like
# the one that gpu_bundle.sh makes. Checks that each part finishes, that each line of the results is
# JSON, and that failures are reported as such.
set -u
. "$(dirname "$0")/../../support/effort.sh"
root=$1
programs=$2
work=$3
bundle=$work/bundle
bin=$bundle/bin
out=$work/out
fashion=/usr/share/datasets/fashion-mnist

fail() {
    echo "on_fake.sh: $*"
    exit 1
}

rm -rf "$work" && mkdir -p "$bin" "$bundle/data" || exit 1
for program in train_gpt train_fashion train_cnn gpu_claims gpu_facts; do
    ln -s "$programs/tests/${program}_on_fake" "$bin/$program" || exit 1
done
# A program that prints a library's warning has not failed.
rm "$bin/gpu_claims"
printf '#!/bin/sh\necho "a library: a warning" >&2\nexec "%s" "$@"\n' "$programs/tests/gpu_claims_on_fake" \
    >"$bin/gpu_claims" && chmod +x "$bin/gpu_claims"
ln -s "$programs/bin/capuchin" "$bin/capuchin"
# The test of the kernels runs on the test driver, whatever gpu_check.sh finds of CUDA.
driver=$programs/tests/ptx/lib
cat >"$bin/kernels_gpu_test" <<END
#!/bin/sh
export KERNELS_SMALL=1 LD_LIBRARY_PATH="$driver" KERNELS_CUBLAS="$driver/libcublas.so.13"
exec "$programs/tests/kernels_on_ptx_test" "\$@"
END
chmod +x "$bin/kernels_gpu_test"
ln -s "$programs/tests/device_contract_cuda_test" "$bin/device_contract_gpu_test"
ln -s "$root"/bench/gpu/*.sh "$root"/bench/gpu/*.py "$bin/"
ln -s "$programs"/data/*.txt "$bundle/data/"
[ -e "$fashion" ] && ln -s "$fashion" "$bundle/data/fashion"
echo 0123abc >"$bundle/commit"
# The batch for passive mode was found beforehand; that for guided mode with more host memory than there is.
printf 'gpt-tiny passive 1300KiB 1 2\ngpt-tiny guided 1300KiB 1000000000000000 2\n' >"$bundle/batches"

check() {
    "$root/scripts/gpu_check.sh" --bin "$bundle" --out "$out" --tiny "$@" >"$work/log" 2>&1
}

# has_line PATTERN: some line of the table matches.
has_line() {
    grep -qE "$1" "$work/log" || fail "no line '$1' in: $(cat "$work/log")"
}

# A sample leaves out the parts that run programs which other tests run as well.
parts="claims facts facts2 strict budgets batches"
rows='"gpt-tiny","mode":"guided"'
export TINY_MODELS=gpt-tiny
if runs_all_cases; then
    parts="tests kernels examples $parts"
    TINY_MODELS="gpt-tiny cnn-tiny"
    rows="$rows "'"cnn-tiny","mode":"off"'
fi
check --only "${parts// /,},pytorch" || fail "it failed: $(cat "$work/log")"
for part in $parts; do
    has_line "^$part .* ok "
    grep -q "\"part\":\"$part\",\"name\":\"[^\"]*\",\"result\":\"ok\"" "$out/gpu_check.jsonl" ||
        fail "$part is not among the results"
done
for number in 1 2 3 4 5 6 7 8 9 10 12 13; do
    grep -q "\"fact\":$number," "$out/gpu_check.jsonl" || fail "no fact $number among the results"
done
grep -q '"table":"interference".*"copies":"both"' "$out/gpu_check.jsonl" || fail "no table of interference"
for row in $rows; do
    grep -q "\"bench\":\"budgets\",\"model\":$row" "$out/gpu_check.jsonl" || fail "no row of $row among the results"
done
has_line '^gpt-tiny +passive +in 1300KiB: batch +2 '
has_line '^gpt-tiny +guided +in 1300KiB: batch +([3-9]|[1-9][0-9]) '
has_line '^[0-9]+ passed, 0 failed, [0-9]+ skipped'
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys
for line in open(sys.argv[1]):
    json.loads(line)' "$out/gpu_check.jsonl" || fail "not JSON: $(cat "$out/gpu_check.jsonl")"
fi

# One page, with what docs/results asks of a page, and the same as JSON.
grep -q '^Machine: .*a fake' "$out/report.md" && grep -qE '^Command: `make gpu-check`.* 20[0-9-]+ at 0123abc' "$out/report.md" ||
    fail "the page lacks machine, date or commit: $(cat "$out/report.md")"
[ "$(wc -l <"$out/report.md")" -lt 100 ] || fail "that is no page: $(cat "$out/report.md")"
grep -q '^| gpt-tiny | off | 100 % |' "$out/report.md" || fail "no budgets on the page: $(cat "$out/report.md")"
grep -q '^| calls that map memory in steady iterations | ' "$out/report.md" || fail "no claims on the page"
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys
page = json.load(open(sys.argv[1]))
assert page["failed"] == 0 and page["passed"] > 5 and page["claims"] and page["facts"] and page["benches"]
assert "libfake_cublas.so" in page["runs"][0]["cublas"], page["runs"]' "$out/report.json" || fail "report.json is wrong"
fi

# The reports of the runs are kept, each in its folder.
tar tzf "$out/reports.tar.gz" >"$work/kept" && grep -q 'keep/gpt-guided-.*/limited.report' "$work/kept" ||
    fail "no reports were kept: $(cat "$work/kept")"

# From here on it is the script that is tested, so a measurement takes no time.
machine=$("$bin/gpu_facts" --probe)
cat >"$work/facts" <<'END'
#!/bin/sh
case $1 in
--probe) echo "$MACHINE" ;;
--cublas) exec "$FACTS" "$@" ;;
*) echo '{"fact":1,"what":"a fact","value":1,"unit":"ns"}' ;;
esac
END
chmod +x "$work/facts" && ln -sf "$work/facts" "$bin/gpu_facts"
export MACHINE=$machine FACTS=$programs/tests/gpu_facts_on_fake

# Other losses are reported, with what the run printed, and the run is repeated with blocking launches. A
# run that stays passive does not pass for a guided one.
cat >"$work/wrong" <<'END'
#!/bin/bash
"$TRAIN" "${@/#guided/passive}" || exit
case $* in
*guided*) ;;
*limited.log*) echo "another loss" >>limited.log ;;
esac
END
chmod +x "$work/wrong"
ln -sf "$work/wrong" "$bin/train_gpt"
TRAIN=$programs/tests/train_gpt_on_fake check --only strict && fail "it passed with other losses"
has_line '^strict +train_gpt, passive.*FAILED'
has_line '^strict +train_gpt, guided.*FAILED.*no iteration followed a plan'
grep -q '^> another loss' "$out/gpu_check.log" || fail "the log does not say how the losses differ"
grep -q 'with blocking launches: exit code 1' "$out/gpu_check.log" || fail "the failed step did not run again"
ln -sf "$programs/tests/train_gpt_on_fake" "$bin/train_gpt"

# A claim that does not hold fails, on the page, too; so does a program that checks none.
cat >"$work/claims" <<'END'
#!/bin/sh
echo '{"claim":"holds well","value":1,"limit":2,"unit":"MiB","verdict":"holds","detail":"fine"}'
echo '{"claim":"takes too much","value":3,"limit":2,"unit":"MiB","verdict":"BROKEN","detail":"of all"}'
exit 1
END
chmod +x "$work/claims" && ln -sf "$work/claims" "$bin/gpu_claims"
check --only claims && fail "it passed with a claim that does not hold"
has_line '^claims +holds well +ok '
has_line '^claims +takes too much +FAILED .*3 MiB \(limit 2\); of all'
grep -q '^| takes too much | 3 MiB | 2 | BROKEN |' "$out/report.md" || fail "the page lacks the claim: $(cat "$out/report.md")"
ln -sf "$(type -P true)" "$bin/gpu_claims"
check --only claims && fail "it passed without a claim"
has_line '^claims +gpu_claims +FAILED'

# Faults of the machine, each named: no cuBLAS, a driver without virtual memory, too little device memory.
KERNELS_CUBLAS=/nowhere/libcublas.so check --only strict && fail "it passed without cuBLAS"
has_line '^machine +cuBLAS +FAILED .*/nowhere/libcublas.so: cannot open'
has_line '^strict +train_gpt, passive.*FAILED.*not supported: /nowhere/libcublas.so: cannot open'
grep -q '^| FAILED | machine | cuBLAS | .*/nowhere' "$out/report.md" || fail "the page does not name cuBLAS"
FAKE_GPU=old check --only strict && fail "it passed with a driver without virtual memory"
has_line '^strict +train_gpt, passive.*FAILED.*the CUDA driver does not have cuMemMap'
FAKE_GPU=small check --only strict && fail "it passed without device memory"
has_line '^strict +train_gpt, passive.*FAILED.*(budget|memory)'

# What compute-sanitizer cannot check, or not in time, is skipped; what it finds is a failure.
mkdir -p "$work/tools"
printf '#!/bin/sh\necho "Error: Device not supported. Please refer to the documentation"\nexit 1\n' \
    >"$work/tools/compute-sanitizer" && chmod +x "$work/tools/compute-sanitizer"
PATH=$work/tools:$PATH check --only sanitizer || fail "it failed on a device that compute-sanitizer does not support: $(cat "$work/log")"
has_line '^sanitizer +kernels, memcheck +skipped .*the device is not supported'
has_line '^sanitizer +train_gpt, passive, memcheck +skipped .*the device is not supported'
printf '#!/bin/sh\n[ "$1" = --help ] || exec sleep 100\n' >"$work/tools/compute-sanitizer"
PATH=$work/tools:$PATH check --only sanitizer --patience 1 || fail "it failed because compute-sanitizer took long: $(cat "$work/log")"
has_line '^sanitizer +kernels, memcheck +skipped .*not finished within 120 s'
printf '#!/bin/sh\necho "ERROR SUMMARY: 2 errors"\nexit 1\n' >"$work/tools/compute-sanitizer"
PATH=$work/tools:$PATH check --only sanitizer && fail "it passed with what compute-sanitizer found"
has_line '^sanitizer +kernels, memcheck +FAILED .*2 errors'

# A failure is reported where it happens and again at the end, and the parts after it still run.
ln -sf "$(type -P false)" "$bin/kernels_gpu_test"
ln -sf "$(type -P true)" "$bin/device_contract_gpu_test"
check --only tests,facts && fail "it passed with a test that fails"
has_line '^tests +kernels_gpu_test .*FAILED.*exit code 1'
has_line '^facts .* ok '
has_line '^FAILED:'
has_line '^  tests: kernels_gpu_test: exit code 1'

# A step that hangs fails at its time limit, and the parts after it still run.
ln -sf "$(type -P true)" "$bin/kernels_gpu_test"
printf '#!/bin/sh\nexec sleep 100\n' >"$work/long" && chmod +x "$work/long"
ln -sf "$work/long" "$bin/device_contract_gpu_test"
check --only tests,facts --patience 1 && fail "it passed with a test that hangs"
has_line '^tests +device_contract_gpu_test .*FAILED.*not finished within its time limit'
has_line '^tests +kernels_gpu_test .* ok '
has_line '^facts .* ok '

# A part that is still running when the time is up has not failed, nor has one that does not start.
check --only tests,facts --seconds 3 || fail "it failed when the time was up: $(cat "$work/log")"
has_line '^tests +device_contract_gpu_test .*skipped .*not finished when the time was up'
has_line '^facts .*skipped .*the time is up'
grep -q '"host":"Linux .* cores' "$out/gpu_check.jsonl" || fail "no machine among the results"

# An option without a value is bad usage (exit code 2), not a failure of the machine.
for options in --only "--only ," --out --call "--call 4"; do
    # shellcheck disable=SC2086 # words on purpose
    "$root/scripts/gpu_check.sh" --bin "$bundle" $options >"$work/log" 2>&1
    [ $? -eq 2 ] || fail "$options without a value is not 2: $(cat "$work/log")"
done
check --only facts --seconds 08 || fail "--seconds 08 is rejected: $(cat "$work/log")"
grep -q 'base' "$work/log" && fail "08 is read as an octal number: $(cat "$work/log")"

# If the program is missing, no batch size is found: that must not be reported as "does not fit".
rm "$bin/train_gpt"
check --only batches && fail "batches passed without a program"
has_line '^batches .*FAILED .*train_gpt'

# A missing GPU is a skip; a program that does not start is a failure.
cat >"$work/none" <<'END'
#!/bin/sh
echo "skipped: no GPU: the reason"
exit 77
END
chmod +x "$work/none"
ln -sf "$work/none" "$bin/gpu_facts"
check
[ $? -eq 77 ] || fail "without a GPU the exit code is not 77"
has_line 'no GPU: the reason'
ln -sf "$(type -P false)" "$bin/gpu_facts"
check
[ $? -eq 1 ] || fail "with a program that does not start the exit code is not 1"
echo "all parts finished"
