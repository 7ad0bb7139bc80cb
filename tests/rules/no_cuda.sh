#!/bin/bash
# no_cuda.sh SHARED STATIC [PLUGIN]: checks that CUDA is in the plug-in only. Neither library defines,
# exports or needs a symbol of CUDA, or names a library of CUDA; the plug-in exports one symbol, and
# has the CUDA runtime inside.
set -u
status=0

complain() {
    echo "$*"
    status=1
}

# The runtime's and the driver's functions, and what compiled kernels refer to.
cuda='^(cu[A-Z]|cuda[A-Z]|__cuda|__nv_|cublas|cudart)'
shared=$(nm -D "$1" | awk '{ sub(/@.*/, "", $NF); print $NF }' | grep -E "$cuda")
static=$(nm "$2" | awk '{ print $NF }' | grep -E "$cuda")
[ -z "$shared" ] || complain "shared: symbols of CUDA: $(xargs <<<"$shared")"
[ -z "$static" ] || complain "static: symbols of CUDA: $(xargs <<<"$static")"
needed=$(readelf -d "$1" | grep -E 'NEEDED.*\[lib(cuda|cudart|cublas|nv)' | sed 's/.*\[//; s/\].*//')
[ -z "$needed" ] || complain "shared: needs $needed"
if [ $# -gt 2 ]; then
    exported=$(nm -D --defined-only "$3" | awk '{ print $NF }' | grep -vE '^(__start_|__stop_)')
    [ "$exported" = cuda_plugin ] || complain "plug-in: exports $(xargs <<<"$exported")"
    needed=$(readelf -d "$3" | grep -E 'NEEDED.*\[lib(cuda|cudart)' | sed 's/.*\[//; s/\].*//')
    [ -z "$needed" ] || complain "plug-in: needs $needed"
fi
exit $status
