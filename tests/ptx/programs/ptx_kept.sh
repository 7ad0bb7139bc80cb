#!/bin/bash
# ptx_kept.sh NVCC SOURCE.cu...: checks that the PTX beside each source is what nvcc makes of it. Another
# version of nvcc may make something else, so a file of another version is skipped.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
nvcc=$1
shift
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
status=0
skipped=0

# The line of the header that says which compiler it was.
build() {
    grep -m1 '^// Compiler Build ID' "$1"
}

# Without the hashes of the source's path that are part of the names of what is internal to a file.
names() {
    sed 's/_INTERNAL_[0-9a-f]\{8\}_/_INTERNAL_/g' "$1"
}

for source in "$@"; do
    kept=${source%.cu}.ptx
    "$nvcc" -std=c++17 -arch=compute_80 -I"$root" -I"$root/include" -ptx -o "$work/made.ptx" "$source" || exit 1
    if [ "$(build "$kept")" != "$(build "$work/made.ptx")" ]; then
        echo "skipped: $kept is of another version of nvcc"
        skipped=77
    elif ! cmp <(names "$kept") <(names "$work/made.ptx"); then
        echo "nvcc -std=c++17 -arch=compute_80 -I$root -I$root/include -ptx -o $kept $source"
        status=1
    fi
done
[ $status -ne 0 ] && exit $status
exit $skipped
