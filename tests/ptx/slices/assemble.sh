#!/bin/bash
# assemble.sh PTXAS WRITE_SLICES PTX...: assembles the slices of all kernels in files of PTX for each architecture that
# programs are checked on, as the driver does at run time. A slice is launched with the blocks of its kernel, so its
# registers must suffice for as many threads as the kernel's bounds allow: 1024 if it has none.
set -eu
. "${0%/*}/../../support/effort.sh"
ptxas=$1 write=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

mkdir "$work/slices"
"$write" "$work/slices" "$@"
architectures=90
runs_all_cases && architectures="80 90"
for architecture in $architectures; do
    for module in "$work"/slices/*.ptx; do
        target=$(sed -n 's/^\.target sm_\([0-9]*\).*/\1/p' "$module")
        [ "$target" -le "$architecture" ] || continue
        if ! "$ptxas" -v --gpu-name "sm_$architecture" -o "$work/cubin" "$module" 2>"$work/said"; then
            echo "${module##*/}, sm_$architecture:" && cat "$work/said"
            status=1
        fi
        # The registers of a multiprocessor are given out by 256 per warp.
        awk -v name="${module##*/}, sm_$architecture" '
            FILENAME ~ /ptx$/ {
                if ($1 == ".visible") { kernel = $3; sub(/\(.*/, "", kernel) }
                if ($1 == ".maxntid") bound[kernel] = $2
                next
            }
            /Compiling entry function/ { kernel = $0; sub(/^[^\x27]*\x27/, "", kernel); sub(/\x27.*/, "", kernel) }
            /Used [0-9]+ registers/ {
                registers = $0; sub(/.*Used /, "", registers); sub(/ .*/, "", registers)
                threads = kernel in bound ? bound[kernel] : 1024
                if (int((registers * 32 + 255) / 256) * 256 * int((threads + 31) / 32) > 65536) {
                    print name ": " kernel " needs " registers " registers, too many for " threads " threads"
                    failed = 1
                }
                count++
            }
            END { exit failed || count == 0 }' "$module" "$work/said" || status=1
    done
done
exit $status
