#!/bin/bash
# gpu_libraries.sh: where programs of a bundle find their libraries. gpu_check.sh and gpu_first.sh source it.

# use_libraries BUNDLE FOLDER: makes FOLDER, with the bundle's libraries that the machine does not have, and
# adds it to the loader's search path. The machine's own library takes precedence, since other programs
# here need that one.
use_libraries() {
    local library

    mkdir -p "$2" || return
    for library in "$1"/lib/*.so*; do
        [ -e "$library" ] || continue
        ldconfig -p 2>/dev/null | grep -q "[[:space:]]${library##*/} " || ln -sf "$library" "$2/"
    done
    export LD_LIBRARY_PATH=$2${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# find_cublas PATH: adds cuBLAS from the toolkit or from a Python package to the search path of the loader;
# PATH is what it was at first, for Python.
find_cublas() {
    local folder

    for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib \
        $(LD_LIBRARY_PATH=$1 timeout -k 5 20 python3 -c 'import glob, sys
for path in sys.path:
    print(*glob.glob(path + "/nvidia/*/lib"))' 2>/dev/null); do
        if ls "$folder"/libcublas.so.* >/dev/null 2>&1; then
            LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
        fi
    done
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
}
