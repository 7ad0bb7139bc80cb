#!/bin/bash
# keep.sh [NVCC]: compiles the PTX that is kept beside the kernels again. As all kept PTX it is for compute
# capability 8.0.
set -eu
cd "$(dirname "$0")/../../.."
nvcc=${1:-nvcc}

for source in kernels/*.cu; do
    case $source in kernels/blas*) continue ;; esac # no kernels
    "$nvcc" -std=c++17 -arch=compute_80 -I. -Iinclude -ptx -o "${source%.cu}.ptx" "$source"
done
