#!/bin/bash
# code.sh nvcc|clang COMPILER SOURCE.cu OUT.ptx: compiles kernels to PTX for compute capability 8.0, and writes what they
# include to OUT.ptx.d.
set -eu
kind=$1 compiler=$2 source=$3 out=$4
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
includes=(-I"$root" -I"$root/include" -MD -MF "$out.d")

if [ "$kind" = nvcc ]; then
    "$compiler" -std=c++17 -arch=compute_80 -ptx "${includes[@]}" -MT "$out" -o "$out" "$source"
    exit
fi
# Everything is inlined, as by nvcc. Without sinking, each round of a loop over rows has an access, by which tests with
# random numbers of rows limit what they execute.
"$compiler" -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -nocudainc -nocudalib -Wno-unknown-cuda-version \
    -Xclang -target-feature -Xclang +ptx70 -std=c++17 -O2 -ffp-contract=off \
    -mllvm -inline-threshold=10000 -mllvm -disable-machine-sink \
    -include "$here/device.h" "${includes[@]}" -MT "$out" -S -o "$out.clang" "$source"
# Names as nvcc writes them: without the mark of static functions.
sed 's/\b\(_ZZ*\)L/\1/g' "$out.clang" >"$out"
rm "$out.clang"
