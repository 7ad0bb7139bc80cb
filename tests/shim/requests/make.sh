#!/bin/bash
# Makes the lists of this folder: lines of name, version and flags (2: of the per-thread default stream).
#   make.sh variants INCLUDE            which variants of functions the toolkit's headers declare
#   make.sh requests START LOG RUNTIME  what a CUDA runtime asks the driver for at its start. START and LOG are
#                                       start_runtime.c and log_driver.c, compiled. No device is pretended: the
#                                       driver says that there is none, and the runtime gives up
set -eu
case ${1:-} in
variants)
    cat "$2"/cuda*Typedefs.h | grep -ohE '\*PFN_cu[A-Za-z0-9]+_v[0-9]+(_pt[sd][sz])?\)' |
        sed -E 's/^\*PFN_//; s/\)$//; s/_v([0-9]+)(_pt[sd][sz])?$/ \1 \2/' |
        awk '{ print $1, $2, NF == 3 ? 2 : 0 }' ;;
requests)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    ln -s "$(realpath "$3")" "$work/libcuda.so.1"
    LD_LIBRARY_PATH=$work "$2" "$4" ;;
*)
    echo "make.sh variants INCLUDE | requests START LOG RUNTIME" >&2
    exit 2 ;;
esac | LC_ALL=C sort -u
