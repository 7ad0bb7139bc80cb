#!/bin/bash
# scripts/gpu_bundle.sh BUILD FOLDER: copies to FOLDER everything that `gpu_check.sh --bin FOLDER` needs
# on a machine that has only a GPU: programs, their libraries (except the compiler's and CUDA's), data
# and scripts. Fails if that is more than 64 MiB. Exit code 77: the build has no programs for a GPU.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
build=$(cd "$1" && pwd) || exit 1
folder=$2
fashion=/usr/share/datasets/fashion-mnist
limit=$((64 << 20))

if [ ! -x "$build/bin/gpu_facts" ]; then
    echo "skipped: $build has no programs for a GPU, since it was built without nvcc"
    exit 77
fi
rm -rf "$folder" && mkdir -p "$folder/lib" "$folder/data/fashion" || exit 1
folder=$(cd "$folder" && pwd) || exit 1

for program in "$build"/bin/{gpu_facts,gpu_claims,capuchin,train_gpt,train_fashion,train_cnn} \
    "$build"/bin/drop_in_cuda_* "$build"/tests/*_gpu_test; do
    [ -x "$program" ] || continue
    cp "$program" "$folder/" && strip "$folder/${program##*/}" || exit 1
    ldd "$program" >>"$folder/lib/list" || exit 1
done
# The library looks for the plug-in with the cuda device next to itself.
cp "$build"/lib/libcapuchin-cuda*.so "$folder/lib/" && strip "$folder"/lib/libcapuchin-cuda*.so || exit 1
awk '$2 == "=>" && $3 ~ /^\// { print $3 }' "$folder/lib/list" | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libcuda|libcudart|libcublas|libcublasLt)\.so' |
    while read -r library; do
        cp -L "$library" "$folder/lib/" || exit 1
    done || exit 1
rm "$folder/lib/list"
# OpenBLAS has code for many processors and is the largest part. gpu_check.sh unpacks it.
find "$folder/lib" -size +8M -exec gzip -9 {} +

cp "$root"/scripts/gpu_{check,report}.sh "$root"/bench/gpu/*.sh "$root"/bench/gpu/*.py "$folder/" || exit 1
cp "$build"/data/*.txt "$folder/data/bible-kjv.txt" || exit 1
# The search for the largest batches needs no GPU. Of the machine's memory, 40 GiB may be pinned.
CAPUCHIN_HOST_BUDGET=$((40 << 30)) FIND=1 "$root/bench/gpu/batches.sh" "$build/bin" "$folder/data/bible-kjv.txt" "$folder/batches" ||
    exit 1
git -C "$root" rev-parse --short HEAD >"$folder/commit" 2>/dev/null # for the page of results

# subset NAME COUNT ITEM-BYTES MORE-HEADER: copies the first items of a file of Fashion-MNIST, with a
# header that has the new count. The complete files would be too large.
subset() {
    local from=$fashion/$1 count=$2 bytes=$3 more=$4

    {
        gunzip -c "$from" 2>/dev/null | head -c 4
        # shellcheck disable=SC2059 # the format is the number, byte by byte
        printf "$(printf '\\%03o\\%03o\\%03o\\%03o' 0 0 $((count / 256)) $((count % 256)))"
        gunzip -c "$from" 2>/dev/null | tail -c +9 | head -c $((more + count * bytes))
    } | gzip -9 >"$folder/data/fashion/$1"
}
if [ -e "$fashion" ]; then
    subset train-images-idx3-ubyte.gz 6000 784 8
    subset train-labels-idx1-ubyte.gz 6000 1 0
    subset t10k-images-idx3-ubyte.gz 1000 784 8
    subset t10k-labels-idx1-ubyte.gz 1000 1 0
else
    rmdir "$folder/data/fashion"
fi

bytes=$(du -sb "$folder" | cut -f1)
echo "$folder: $((bytes / 1048576)) MiB; run: $folder/gpu_check.sh --bin $folder"
if [ "$bytes" -gt $limit ]; then
    echo "gpu_bundle.sh: more than $((limit >> 20)) MiB" >&2
    exit 1
fi
