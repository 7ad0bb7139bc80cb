#!/bin/bash
# bundle.sh ROOT PROGRAMS WORK: makes a bundle, unpacks it elsewhere, and runs gpu_first.sh there without a driver:
# everything that the programs load is in it, or named as what the machine has to have.
set -u
root=$1 programs=$2 work=$3

fail() {
    echo "bundle.sh: $*"
    cat "$work/log"
    exit 1
}

rm -rf "$work" && mkdir -p "$work/there" || exit 1
BATCHES=skip "$root/scripts/gpu_bundle.sh" "$programs" "$work/gpu-bundle" >"$work/log" 2>&1
code=$?
[ $code -ne 77 ] || { tail -n 1 "$work/log"; exit 77; }
[ $code -eq 0 ] || fail "there is no bundle"
tar xJf "$work/gpu-bundle.tar.xz" -C "$work/there" && rm -r "$work/gpu-bundle" || fail "it cannot be unpacked"
bundle=$work/there/gpu-bundle
grep -q '^x86-64, GLIBC_2' "$bundle/needs" && grep -q '^libcublas.so' "$bundle/needs" || fail "it does not say what it needs"
for file in bin/{gpu_facts,gpu_claims,train_gpt,train_cnn,api_gpu_test,device_contract_gpu_test,kernels_gpu_test,capuchin} \
    bin/unmodified_{classifier,gpt} lib/capuchin/libcapuchin-interpose.so data/bible-kjv.txt commit; do
    [ -s "$bundle/$file" ] || fail "$file is missing"
done
for program in classifier gpt; do
    "$bundle/bin/capuchin" kernels "$bundle/bin/unmodified_$program" >"$work/kernels" &&
        grep -q 'elf *sm_90' "$work/kernels" && grep -q 'ptx *compute_90' "$work/kernels" || fail "$program is not for sm_90 with PTX"
done
! "$programs/bin/gpu_facts" --probe >/dev/null || exit 0 # where there is a GPU, this is not the place to use it
bash "$bundle/bin/gpu_first.sh" "$bundle" "$work/out" 120 >"$work/log" 2>&1 && fail "it passed without a driver"
# The machine needs cuBLAS and the driver, and nothing else.
if grep -E '=> not found|version .* required' "$work/out/all.log" | grep -v 'libcu[a-zA-Z]*\.so'; then
    fail "libraries are missing"
fi
grep -qE '^01-probe	skipped	.*no GPU' "$work/out/summary.tsv" || fail "the probe did not start"
grep -qE '^02-plug-in	FAILED	.*no CUDA device' "$work/out/summary.tsv" || fail "the plug-in was not opened"
echo "the bundle is complete: $(stat -c %s "$work/gpu-bundle.tar.xz") bytes"
