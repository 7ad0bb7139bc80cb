#!/bin/bash
# scripts/gpu_bundle.sh BUILD FOLDER: makes FOLDER and FOLDER.tar.xz, with everything that
# `gpu_first.sh FOLDER` and `gpu_check.sh --bin FOLDER` need on a machine that has only a GPU: nothing is
# compiled there.
#
#   bin/           programs, stripped, and scripts
#   lib/           libcapuchin, the plug-in with the cuda device, and what the programs need besides
#   lib/capuchin/  the library that stands in for the driver
#   data/          a text, and a part of Fashion-MNIST
#   needs          what the machine has to have: the C library, the driver, and cuBLAS, which is too large
#
# BATCHES=skip leaves out the search for the largest batches, which takes minutes. Fails if FOLDER.tar.xz
# is larger than 20 MiB. Exit code 77: the build has no programs for a GPU.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
build=$(cd "$1" && pwd) || exit 1
folder=$2
fashion=/usr/share/datasets/fashion-mnist
limit=$((20 << 20))

if [ ! -x "$build/bin/gpu_facts" ]; then
    echo "skipped: $build has no programs for a GPU, since it was built without nvcc"
    exit 77
fi
cmake --build "$build" --target unmodified_for_gpu >"$build/unmodified.log" 2>&1 ||
    { cat "$build/unmodified.log"; exit 1; }
rm -rf "$folder" "$folder.tar.xz" && mkdir -p "$folder"/{bin,lib/capuchin,data/fashion} || exit 1
folder=$(cd "$folder" && pwd) || exit 1

for program in "$build"/bin/{gpu_facts,gpu_claims,capuchin,train_gpt,train_fashion,train_cnn} \
    "$build"/bin/{drop_in_cuda,unmodified}_* "$build"/tests/*_gpu_test; do
    [ -x "$program" ] || continue
    cp "$program" "$folder/bin/" && strip "$folder/bin/${program##*/}" || exit 1
done
# The library looks for the plug-in with the cuda device next to itself.
cp "$build"/lib/libcapuchin-cuda*.so "$folder/lib/" &&
    cp -P "$build"/lib/capuchin/* "$folder/lib/capuchin/" || exit 1
ldd "$folder"/bin/* "$folder"/lib/*.so "$folder"/lib/capuchin/libcapuchin-*.so |
    awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libcuda|libcublas|libcublasLt)\.so' |
    while read -r library; do
        cp -L "$library" "$folder/lib/" || exit 1
    done || exit 1
strip "$folder"/lib/{,capuchin/}libcapuchin*.so* || exit 1

cp "$root"/scripts/gpu_{check,first,libraries,report}.sh "$root"/bench/gpu/*.sh "$root"/bench/gpu/*.py "$folder/bin/" || exit 1
cp "$build"/data/*.txt "$folder/data/bible-kjv.txt" || exit 1
# The search for the largest batches needs no GPU. Of the machine's memory, 40 GiB may be pinned.
if [ "${BATCHES:-}" != skip ]; then
    CAPUCHIN_HOST_BUDGET=$((40 << 30)) FIND=1 "$root/bench/gpu/batches.sh" "$build/bin" "$folder/data/bible-kjv.txt" \
        "$folder/batches" || exit 1
fi
git -C "$root" rev-parse --short HEAD >"$folder/commit" 2>/dev/null # for the page of results

# newest PREFIX: the newest version with this prefix of the symbols that the programs need.
newest() {
    find "$folder/bin" "$folder/lib" -type f -exec objdump -T {} + 2>/dev/null |
        grep -oE "\b$1_[0-9]+(\.[0-9]+)+" | sort -uV | tail -n 1
}
{
    echo "x86-64, $(newest GLIBC), $(newest GLIBCXX)"
    # shellcheck disable=SC2012 # the name of the plug-in
    echo "a driver for CUDA $(ls "$folder"/lib/libcapuchin-cuda*.so | sed 's/.*cuda\([0-9]*\)\.so/\1/' | tail -n 1)"
    ldd "$folder"/bin/unmodified_* 2>/dev/null | awk '/libcublas/ { print $1 }' | sort -u
} >"$folder/needs"

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

XZ_OPT="-9 -T2" tar cJf "$folder.tar.xz" -C "$folder/.." "${folder##*/}" || exit 1
bytes=$(stat -c %s "$folder.tar.xz")
printf '%s.tar.xz: %s MiB; needs:\n%s\n' "$folder" "$(awk -v b="$bytes" 'BEGIN { printf "%.1f", b / 1048576 }')" \
    "$(sed 's/^/    /' "$folder/needs")"
if [ "$bytes" -gt $limit ]; then
    echo "gpu_bundle.sh: more than $((limit >> 20)) MiB" >&2
    exit 1
fi
