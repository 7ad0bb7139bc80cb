#!/bin/bash
# headers.sh INCLUDE CC CXX [MPI-INCLUDE...]: checks that each public header compiles alone and included twice, as C11
# and as C++17 (.hpp: as C++17 alone), and that the initialisers of config and report work in C and in old and new C++.
# capuchin/parallel.h needs MPI's header, and is left out without the folders of that.
set -u
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
status=0
count=0
mpi=()
for folder in "${@:4}"; do
    mpi+=(-isystem "$folder")
done
for header in "$1"/capuchin/*.h "$1"/capuchin/*.hpp; do
    [ -e "$header" ] || continue
    [[ $header == */parallel.h && ${#mpi[@]} -eq 0 ]] && continue
    name=capuchin/${header##*/}
    printf '#include "%s"\n#include "%s"\ntypedef int not_empty;\n' "$name" "$name" >"$work/one.c"
    cp "$work/one.c" "$work/one.cpp"
    [[ $name == *.hpp ]] || "$2" -std=c11 -pedantic -Wall -Wextra -Wstrict-prototypes -Werror -I"$1" "${mpi[@]}" -fsyntax-only \
        "$work/one.c" || { echo "$name does not compile as C11"; status=1; }
    "$3" -std=c++17 -pedantic -Wall -Wextra -Werror -I"$1" "${mpi[@]}" -fsyntax-only \
        "$work/one.cpp" || { echo "$name does not compile as C++17"; status=1; }
    count=$((count + 1))
done
if [ -e "$1/capuchin/capuchin.h" ]; then
    cat >"$work/use.c" <<'END'
#include "capuchin/capuchin.h"
int main(void)
{
    capu_config config = CAPU_CONFIG_INIT;
    capu_report report = CAPU_REPORT_INIT;
    return config.size != sizeof(config) || config.error_bytes != 0 || config.given != 0 ||
           report.size != sizeof(report) || report.stall_count != 0;
}
END
    cp "$work/use.c" "$work/use.cpp"
    for use in "$2 c11 c" "$3 c++11 cpp" "$3 c++17 cpp" "$3 c++20 cpp"; do
        read -r compiler standard suffix <<<"$use"
        "$compiler" -std="$standard" -pedantic -Wall -Wextra -Werror -I"$1" "$work/use.$suffix" \
            -o "$work/use" && "$work/use" || { echo "CAPU_CONFIG_INIT or CAPU_REPORT_INIT fails in $standard"; status=1; }
    done
fi
[ "$count" -gt 1 ] || { echo "no headers in $1"; status=1; }
exit $status
