#!/bin/bash
# cpp.sh ROOT LIBRARIES CXX: compiles cpp_test.cpp and cpp_launchers.cpp without warnings with CXX and, where
# there is one, clang++, in several ways, and runs them; checks that ops that could not be copied do not compile, and
# that the compiler's message says why.
set -u
root=$1
libraries=$2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
unset CAPUCHIN_BUDGET CAPUCHIN_DEVICE CAPUCHIN_MODE
status=0
compilers=("$3")
command -v clang++ >/dev/null && compilers+=(clang++)
warnings=(-pedantic -Wall -Wextra -Wshadow -Wconversion -Werror)

# rejects TEXT LINE: the compiler rejects the line with a message that contains the text.
rejects() {
    printf '#include <capuchin/capuchin.hpp>\n#include <string>\n%s\n' "$2" >"$work/x.cpp"
    if "$compiler" -std=c++17 -I"$root/include" -fsyntax-only "$work/x.cpp" >"$work/out" 2>&1; then
        echo "$compiler compiles: $2"
        status=1
    elif ! grep -qE -e "$1" "$work/out"; then
        echo "$compiler does not say '$1' of: $2"
        cat "$work/out"
        status=1
    fi
}

for compiler in "${compilers[@]}"; do
    for options in "-std=c++17 -fno-exceptions -fno-rtti" "-std=c++20 -O2"; do
        # shellcheck disable=SC2086 # words on purpose
        "$compiler" $options "${warnings[@]}" -I"$root/include" "$root/tests/api/program/cpp_test.cpp" \
            -o "$work/test" -L"$libraries" -Wl,-rpath,"$libraries" -lcapuchin && "$work/test" ||
            { echo "$compiler $options: cpp_test.cpp fails"; status=1; }
    done
    # Those whose casts are a matter of style compile without warnings, too. Only g++ knows the second.
    styles=(-Wold-style-cast -Wcast-qual)
    "$compiler" -Wuseless-cast -Werror -fsyntax-only -x c++ /dev/null 2>/dev/null && styles+=(-Wuseless-cast)
    for standard in c++11 c++17 c++20; do
        "$compiler" -std=$standard "${warnings[@]}" "${styles[@]}" -I"$root/include" \
            "$root/tests/api/program/cpp_launchers.cpp" -o "$work/test" -L"$libraries" -Wl,-rpath,"$libraries" \
            -lcapuchin && "$work/test" ||
            { echo "$compiler $standard: cpp_launchers.cpp fails"; status=1; }
    done
    "$compiler" -std=c++17 "${warnings[@]}" "${styles[@]}" -I"$root/include" -fsyntax-only \
        "$root/tests/api/program/cpp_test.cpp" || { echo "$compiler: cpp_test.cpp has casts"; status=1; }
    run='capu_status f(capu_context *c, float *x, const float *y)
        { std::string s; int n = 0; (void)s, (void)n, (void)x, (void)y; return capu::run(c, "f", '
    rejects 'copied byte by byte' "$run {capu::writes(x)}, [=](capu_stream) { x[0] = float(s.size()); }); }"
    rejects 'not mutable' "$run {capu::writes(x)}, [=](capu_stream) mutable { n++; }); }"
    rejects 'takes a capu_stream' "$run {capu::writes(x)}, [=](int, int) {}); }"
    rejects 'nothing or a capu_status' "$run {capu::writes(x)}, [=](capu_stream) { return 1; }); }"
    rejects 'const' "$run {capu::writes(y)}, [=](capu_stream) {}); }"
    rejects 'cannot write what is const' "$run {capu::updates(y, 4)}, [=](capu_stream) {}); }"
    rejects 'whole number' "$run {capu::writes(x)}, [](capu_stream) {}); } capu::op_name n(\"n\", 1.5);"
    rejects 'delete|copy' 'capu::context a; capu::context b = a;'
done
exit $status
