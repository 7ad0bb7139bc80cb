#!/bin/bash
# self_test.sh RULES CC CXX: checks that each rule finds a deliberate violation and accepts a tree
# without one.
set -u
rules=$1
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
status=0

fail() {
    echo "self test: $1"
    status=1
}

# Makes a tree without violations.
tree() {
    rm -rf "$work/tree"
    mkdir -p "$work"/tree/{include/capuchin,base,device,allocator,policy/format,runtime,kernels,models,interpose,parallel,tests/unit/policy}
    cat >"$work/tree/include/capuchin/a.h" <<'HEADER'
#ifndef A_H
#define A_H
#define CAPU_API __attribute__((visibility("default")))
CAPU_API int capu_one(void);
CAPU_API int
capu_two(int a);
#endif
HEADER
    cp "$work/tree/include/capuchin/a.h" "$work/tree/include/capuchin/b.h"
    sed -i 's/A_H/B_H/; /CAPU_API/d; /capu_two/d' "$work/tree/include/capuchin/b.h"
    cp "$rules/../../.clang-format" "$work/tree/"
}

# directions FILE LINE REASON: checks that the rule rejects that line in that file, for that reason.
directions() {
    tree
    echo "$2" >>"$work/tree/$1"
    if "$rules/directions.sh" "$work/tree" >"$work/out"; then
        fail "directions.sh accepts '$2' in $1"
    elif ! grep -q "^$1:[0-9]*: .*$3" "$work/out"; then
        fail "directions.sh does not say '$3' of '$2' in $1: $(cat "$work/out")"
    fi
}

tree
"$rules/directions.sh" "$work/tree" || fail "directions.sh refuses a tree without violations"
directions policy/x.c '#include "allocator/pages.h"' 'may not include allocator'
directions policy/x.c '#include "device/device.h"' 'may not include device'
directions policy/x.c '#include <time.h>' 'pure'
directions policy/format/x.c '#include "policy/model/clock.h"' 'policy/format may not include'
directions base/x.h '#include "device/device.h"' 'base may not include device'
directions base/x.h '#include "capuchin/status.h"' 'base may not include capuchin'
directions kernels/x.c '#include "base/assert.h"' 'kernels may not include base'
directions allocator/x.h '#  include "policy/format/plan.h"' 'may not include policy'
directions device/x.c '#include "runtime/issue/whole.h"' 'may not include runtime'
directions include/capuchin/a.h '#include "device/device.h"' 'may not include device'
directions include/capuchin/a.hpp '#include "device/device.h"' 'may not include device'
directions kernels/x.c '#include "runtime/issue/whole.h"' 'may not include runtime'
directions interpose/x.c '#include "runtime/issue/whole.h"' 'may not include runtime'
directions interpose/x.c '#include <cuda.h>' 'CUDA header'
directions parallel/x.c '#include "runtime/issue/whole.h"' 'parallel may not include runtime'
directions runtime/x.c '#include "parallel/group.h"' 'runtime may not include parallel'
directions runtime/x.c '#include <mpi.h>' 'mpi.h outside'
directions include/capuchin/a.h '#include <mpi.h>' 'mpi.h outside'
directions models/x.c '#include "runtime/issue/whole.h"' 'may not include runtime'
directions kernels/x.c '#include <cuda_runtime.h>' 'CUDA header'
directions runtime/x.c '#include <cuda.h>' 'CUDA header'
directions device/x.c '#include <uv.h>' 'uv.h'
directions device/x.c '#include "books.h"' 'names no room'
directions tests/unit/policy/x_test.c '#include "runtime/issue/whole.h"' 'may not include runtime'
directions runtime/x.c 'int capu_secret(void);' 'not public'
tree
echo '#include <cuda_runtime.h>' >"$work/tree/kernels/x.cu"
echo '#include <cuda.h>' >"$work/tree/device/cuda.c"
"$rules/directions.sh" "$work/tree" || fail "directions.sh refuses CUDA where it belongs"

# symbols SOURCE CC REASON: checks that a library of that source is rejected for that reason; "" means
# accepted.
symbols() {
    tree
    echo "$1" >"$work/x.c"
    (cd "$work" && rm -f libx.a && "$2" -w -fPIC -c x.c && "$2" -shared -o libx.so x.o &&
        ar rcs libx.a x.o) || fail "cannot compile"
    "$rules/symbols.sh" "$work/tree/include" "$work/libx.so" "$work/libx.a" >"$work/out"
    case $?:$3 in
    0:) ;;
    0:*) fail "symbols.sh accepts: $1" ;;
    *:) fail "symbols.sh refuses: $1: $(cat "$work/out")" ;;
    *) for kind in shared static; do
        grep -q "^$kind: .*$3" "$work/out" || fail "symbols.sh does not say '$kind: $3'"
    done ;;
    esac
}

symbols 'int capu_one(void){return 1;} int capu_two(int a){return a;}' "$2" ''
symbols 'int capu_one(void){return 1;}' "$2" 'missing: capu_two'
symbols 'int capu_one(void){return 1;} int capu_two(int a){return a;} int pages_take;' "$2" \
    'global: pages_take'
symbols 'int capu_one(void){return 1;} int capu_two(int a){return a;} int capu_three;' "$2" \
    'global: capu_three'

# no_cuda SOURCE PLUGIN-SOURCE CC REASON: checks that a library and a plug-in of these sources are
# rejected for that reason; "" means accepted.
no_cuda() {
    echo "$1" >"$work/x.c"
    echo "$2" >"$work/y.c"
    (cd "$work" && "$3" -w -fPIC -c x.c && "$3" -shared -o libx.so x.o && rm -f libx.a && ar rcs libx.a x.o &&
        "$3" -w -shared -fPIC -o liby.so y.c) || fail "cannot compile"
    "$rules/no_cuda.sh" "$work/libx.so" "$work/libx.a" "$work/liby.so" >"$work/out"
    case $?:$4 in
    0:) ;;
    0:*) fail "no_cuda.sh accepts: $1 and $2" ;;
    *:) fail "no_cuda.sh refuses: $1 and $2: $(cat "$work/out")" ;;
    *) grep -qF "$4" "$work/out" || fail "no_cuda.sh does not say '$4': $(cat "$work/out")" ;;
    esac
}

no_cuda 'int f(void){return 1;}' 'int cuda_plugin;' "$2" ''
no_cuda 'int cudaMalloc(void); int f(void){return cudaMalloc();}' 'int cuda_plugin;' "$2" 'shared: symbols of CUDA: cudaMalloc'
no_cuda 'static int cuInit(void){return 1;} int f(void){return cuInit();}' 'int cuda_plugin;' "$2" 'static: symbols of CUDA: cuInit'
no_cuda 'int f(void){return 1;}' 'int cuda_plugin, other;' "$2" 'plug-in: exports cuda_plugin other'

# headers LINE CC CXX: checks that a header with that line is rejected.
headers() {
    tree
    echo "$1" >>"$work/tree/include/capuchin/b.h"
    ! "$rules/headers.sh" "$work/tree/include" "$2" "$3" >/dev/null 2>&1 ||
        fail "headers.sh accepts '$1'"
}

tree
"$rules/headers.sh" "$work/tree/include" "$2" "$3" || fail "headers.sh refuses good headers"
headers 'size_t capu_size(void);' "$2" "$3"  # needs another header
headers 'struct s { int class; };' "$2" "$3" # not C++
headers 'extern int f();' "$2" "$3"          # not a prototype in C
headers 'static const int twice = 1;' "$2" "$3"

# cycles REASON CC SOURCE...: checks that a room of files a.c, b.c, ... with these sources is rejected
# for that reason; "" means accepted.
cycles() {
    local reason=$1 cc=$2
    local names=(a b c)
    local source objects=()
    shift 2
    rm -rf "$work/room.dir"
    mkdir "$work/room.dir"
    for source in "$@"; do
        echo "$source" | "$cc" -w -x c -c -o "$work/room.dir/${names[${#objects[@]}]}.c.o" - ||
            fail "cannot compile"
        objects+=("$work/room.dir/${names[${#objects[@]}]}.c.o")
    done
    "$rules/cycles.sh" room "${objects[@]}" >"$work/out"
    case $?:$reason in
    0:) ;;
    0:*) fail "cycles.sh accepts: $*" ;;
    *:) fail "cycles.sh refuses: $*: $(cat "$work/out")" ;;
    *) grep -qF "$reason" "$work/out" || fail "cycles.sh does not say '$reason': $(cat "$work/out")" ;;
    esac
}

one_way=('int g(void); int f(void){return g();}' 'int h; int g(void){return h;}')
cycles '' "$2" "${one_way[@]}"
calls=('int g(void); int f(void){return g();}' 'int f(void); int g(void){return f();}')
cycles 'room: a.c -> b.c: g' "$2" "${calls[@]}"
cycles 'room: b.c -> a.c: f' "$2" "${calls[@]}"
# Through a variable, through a third file, and through a table of functions.
cycles 'room: b.c -> a.c: x' "$2" 'int g(void); int x; int f(void){return g();}' \
    'extern int x; int g(void){return x;}'
cycles 'room: c.c -> a.c: f' "$2" 'int g(void); int f(void){return g();}' \
    'int h(void); int g(void){return h();}' 'int f(void); int h(void){return f();}'
cycles 'room: a.c -> b.c: table' "$2" \
    'extern int (*const table[])(void); int f(void){return table[0]();}' \
    'int f(void); int (*const table[])(void) = {f};'

# environment LINE: whether the rule refuses that line in a file of the library.
environment() {
    tree
    echo "$1" >"$work/tree/runtime/context/config.c"
    "$rules/environment.sh" "$work/tree" >"$work/out" || fail "environment.sh refuses '$1' in config.c"
    echo "$1" >"$work/tree/runtime/x.c"
    ! "$rules/environment.sh" "$work/tree" >"$work/out"
}

environment 'const char *path = getenv("HOME");' || fail 'environment.sh accepts getenv'
environment 'const char *path = secure_getenv("HOME");' || fail 'environment.sh accepts secure_getenv'
! environment 'const char *path = environment_path("HOME");' || fail 'environment.sh refuses environment_path'

# tensor_state LINE: whether the rule refuses that line in another file than tensor_state.c.
tensor_state() {
    tree
    echo "$1" >"$work/tree/runtime/tensor/tensor_state.c"
    "$rules/tensor_state.sh" "$work/tree" >"$work/out" ||
        fail "tensor_state.sh refuses '$1' in tensor_state.c"
    echo "$1" >"$work/tree/runtime/x.c"
    ! "$rules/tensor_state.sh" "$work/tree" >"$work/out"
}

for line in 'tensor->state.pages = PAGES_OWN;' 'a->list[i]->state.contents=0;' 'b.state.is_saved |= 1;' \
    'part->state = old->state;' 'f(&tensor->state);' 'p = &tensor->state.pages;' '++tensor->state.pages;' \
    'if (a && (t->state.pages = 1)) {'; do
    tensor_state "$line" || fail "tensor_state.sh accepts '$line'"
done
for line in 'if (tensor->state.pages == PAGES_OWN) {' 'a && tensor->state.is_saved' \
    'record->state = RECORD_OPEN;' 'x = tensor->state.pages;' 'tensor->state.contents != CONTENTS_LOST'; do
    ! tensor_state "$line" || fail "tensor_state.sh refuses '$line'"
done

tree
echo 'int  f( void );' >"$work/tree/runtime/x.c"
"$rules/format.sh" "$work/tree" >"$work/out" 2>&1
case $? in
0) fail "format.sh accepts bad formatting" ;;
77) echo "self test: format.sh not tried, no clang-format 14" ;;
*) grep -q 'runtime/x.c:1' "$work/out" || fail "format.sh does not name the file" ;;
esac
exit $status
