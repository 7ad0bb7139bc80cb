#!/bin/bash
# scripts/kernel_slices.sh BUILD [FILE...]: what is known about kernels before they run: a table row for
# this repository's kernels, as nvcc compiled them, and one per FILE (a CUDA program or library; default:
# those libraries of the toolkit that have PTX). Prints Markdown.
set -u
build=${1:-build}
[ $# -gt 0 ] && shift
command=$build/bin/capuchin
objects=("$build"/kernels/CMakeFiles/capuchin_kernels.dir/*.cu.o)
[ -x "$command" ] || { echo "there is no $command: run make first" >&2; exit 1; }
[ -e "${objects[0]}" ] || { echo "skipped: built without nvcc" >&2; exit 77; }
if [ $# -eq 0 ]; then
    folder=${CUDA_HOME:-/usr/local/cuda}/lib64
    for name in cublas curand cusolver cusparse; do
        [ ! -e "$folder/lib$name.so" ] || set -- "$@" "$folder/lib$name.so"
    done
fi

# row NAME FILE...: sums the summaries of the files.
row() {
    local name=$1 file
    shift
    for file in "$@"; do
        "$command" kernels --json "$file" 2>/dev/null | grep '"type":"summary"' ||
            "$command" kernels "$file" 2>&1 | grep -q 'no device code' ||
            { echo "$file: cannot be analysed" >&2; exit 1; }
    done | sed -E 's/[^0-9]+/ /g' | awk -v name="$name" '
        { for (i = 1; i <= NF; i++) sum[i] += $i }
        # closed, open, machine code only; then addresses, conditions and slices by class
        END {
            pointers = sum[10] + sum[11] + sum[12]
            share = 0
            if (pointers) share = 100 * sum[10] / pointers
            printf "| %s | %d | %d | %d | %d | %d | %d | %.1f |\n", name, sum[1] + sum[2], sum[1], pointers,
                sum[10], sum[11], sum[12], share
        }'
}

echo "| kernels of | with PTX | closed | pointers | slices: ids | data | unknown | ids, % |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
row "kernels/" "${objects[@]}"
for file in "$@"; do
    row "$(basename "$file")" "$file"
done
