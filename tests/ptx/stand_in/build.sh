#!/bin/bash
# build.sh CXX LIBRARIES SOURCE.cu OUT [OPTION...]: builds a CUDA program without nvcc. The host code is compiled
# by a C++ compiler, with the options given, after each kernel<<<...>>> is rewritten as a call; the device code is the PTX beside the
# source.
# Only the libraries in the folder LIBRARIES are linked.
set -eu
cxx=$1 libraries=$2 source=$3 out=$4
shift 4
ptx=${source%.cu}.ptx
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# name<args><<<configuration>>>( becomes stand_in_launch(name<args>, configuration)(.
{
    printf '#line 1 "%s"\n' "${source##*/}"
    sed -zE 's/([A-Za-z_][A-Za-z_0-9]*(<[^<>;(){}]*>)?)<<<([^;]*)>>>\(/stand_in_launch(\1, \3)(/g' "$source" |
        sed -E 's/([A-Za-z_][A-Za-z_0-9]*(<[^<>;(){}]*>)?)<<<([^;]*)>>>\(/stand_in_launch(\1, \3)(/g'
} >"$work/program.cc"
if grep -q '<<<' "$work/program.cc"; then
    echo "$source: a launch was not rewritten:" >&2
    grep -n '<<<' "$work/program.cc" >&2
    exit 1
fi
# What kernels refer to on the device has no definition here, and is never reached.
"$cxx" -std=c++17 -O1 -fno-pie -w -I"$here" -I"$here/../../.." -DPROGRAM_PTX="\"$ptx\"" "$@" \
    "$work/program.cc" "$here/registration.cc" \
    -o "$out" -rdynamic -no-pie -Wl,--unresolved-symbols=ignore-in-object-files \
    -L"$libraries" -Wl,-rpath,"$libraries" -l:libcudart.so.13 -l:libcublas.so.13 -ldl
