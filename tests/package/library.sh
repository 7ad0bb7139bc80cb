#!/bin/bash
# library.sh SOURCE BUILD CC: `make lib` builds what is installed and nothing else, and `make install`
# installs the same from there as from a full build. Nothing is compiled: the build only lists its steps.
set -eu
source=$1
build=$2
cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

complain() {
    echo "$*"
    failed=1
}

# What a build tree installs, without the paths of the tree.
installs() {
    sed -n 's|^ *file(INSTALL DESTINATION|&|p' "$1/cmake_install.cmake" "$1"/*/cmake_install.cmake |
        sed "s|$1|BUILD|g" | sort -u
}

cached() {
    echo "-D$1=$(sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt")"
}

(cd "$source" && cmake --preset library -B "$work" -DCMAKE_C_COMPILER="$cc" "$(cached CAPUCHIN_CUDA)" "$(cached CAPUCHIN_MPI)" \
    "$(cached CMAKE_BUILD_TYPE)") >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
ninja -C "$work" -n -v >"$work/steps"

for room in base device allocator policy runtime models interpose shim tools; do
    grep -q " -c $source/$room/" "$work/steps" || complain "nothing of $room is compiled"
done
others=$(grep -o " -c $source/[a-z]*/" "$work/steps" | sort -u |
    grep -Ev '/(base|device|allocator|policy|runtime|parallel|models|interpose|shim|tools)/$' || true)
[ -z "$others" ] || complain "other folders are compiled: $others"
for file in lib/libcapuchin.so lib/libcapuchin.a bin/capuchin; do
    grep -q "$file" "$work/steps" || complain "$file is not built"
done
! grep -E '^(OPENBLAS|CHECK|ZLIB)_' "$work/CMakeCache.txt" || complain "libraries are looked for that are not needed"
diff <(installs "$build") <(installs "$work") || complain "make install would install something else"
exit $failed
