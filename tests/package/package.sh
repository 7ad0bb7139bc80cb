#!/bin/bash
# package.sh SOURCE BUILD CC CXX installed|subproject: uses the library as another project would.
#
# installed: installs the build tree under a temporary prefix, moves the prefix, and builds a program
# against it with find_package and with pkg-config, shared and static.
# subproject: builds the program with add_subdirectory.
set -eu
source=$1
build=$2
cc=$3
cxx=$4
outside=$source/tests/package/outside
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CAPUCHIN_BUDGET CAPUCHIN_DEVICE CAPUCHIN_MODE LD_LIBRARY_PATH

outside_builds() {
    cmake -G Ninja -S "$outside" -B "$work/build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" "$@"
    cmake --build "$work/build" --parallel 2
    "$work/build/outside_shared"
    "$work/build/outside_static"
    "$work/build/outside_cpp"
}

if [ "$5" = subproject ]; then
    outside_builds -DCAPUCHIN_SOURCE="$source"
    cmake --install "$work/build" --prefix "$work/prefix"
    [ ! -e "$work/prefix/include/capuchin" ] && [ ! -e "$work/prefix/bin" ] || { echo "the project's install step also installs capuchin"; exit 1; }
    exit 0
fi

# The prefix is moved after the installation, since nothing in it may depend on its location.
cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"
prefix=$work/prefix
if grep -rlF -e "$source" -e "$work/first" "$prefix" --include='*.cmake' --include='*.pc'; then
    echo "the files above name the tree they came from"
    exit 1
fi
without=(-x private.h)
[ -e "$build/lib/libcapuchin-mpi.so" ] || without+=(-x parallel.h)
if diff -r "${without[@]}" "$source/include/capuchin" "$prefix/include/capuchin"; then :; else
    echo "installed headers differ"
    exit 1
fi
[ "$(find "$prefix/include" -type f | wc -l)" = "$(($(ls "$source/include/capuchin" | wc -l) - ${#without[@]} / 2))" ]

"$prefix/bin/capuchin" machines >/dev/null

# The plug-in with the cuda device, if it was built, is next to the library, and is found there.
for plugin in "$build"/lib/libcapuchin-cuda*.so; do
    [ ! -e "$plugin" ] || cmp "$plugin" "$(find "$prefix" -name "${plugin##*/}")"
done

outside_builds -DCMAKE_PREFIX_PATH="$prefix"
cd "$work"
pc=$(dirname "$(find "$prefix" -name capuchin.pc)")
export PKG_CONFIG_PATH=$pc
library=$(dirname "$pc")
# shellcheck disable=SC2046 # words on purpose
"$cc" "$outside/main.c" -o by_pc $(pkg-config --cflags --libs capuchin)
LD_LIBRARY_PATH=$library ./by_pc
# shellcheck disable=SC2046
"$cxx" -std=c++17 -fno-exceptions "$outside/main.cpp" -o by_pc_cpp $(pkg-config --cflags --libs capuchin)
LD_LIBRARY_PATH=$library ./by_pc_cpp
# Several processes, where MPI was found; without a launcher the program is one.
if [ -e "$build/lib/libcapuchin-mpi.so" ]; then
    # shellcheck disable=SC2046
    "$cc" "$outside/parallel.c" -o by_pc_parallel $(pkg-config --cflags --libs capuchin-mpi)
    LD_LIBRARY_PATH=$library ./by_pc_parallel
    "$work/build/outside_parallel"
fi
# The linker takes the archive only if there is no shared library next to it.
mkdir alone
mv "$library"/libcapuchin.so* alone/
# shellcheck disable=SC2046
"$cc" "$outside/main.c" -o by_pc_static $(pkg-config --cflags --libs --static capuchin)
./by_pc_static
