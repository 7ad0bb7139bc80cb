#!/bin/bash
# launcher_misuse.sh INCLUDE CC: checks that a wrong declaration of a launcher does not compile, and that
# the compiler's message names what is wrong; and that right ones compile without warnings.
set -u
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
status=0

# compiles LINE: whether it does, without warnings; leaves the messages in $work/out.
compiles() {
    printf '#include <capuchin/launcher.h>\n%s\n' "$1" >"$work/x.c"
    "$2" -std=c11 -pedantic -Wall -Wextra -Wshadow -Wmissing-prototypes -Werror -O1 -I"$3" -c "$work/x.c" \
        -o "$work/x.o" >"$work/out" 2>&1
}

# rejects TEXT LINE: the compiler rejects the line with a message that contains the text.
rejects() {
    if compiles "$2" "$cc" "$include"; then
        echo "compiles: $2"
        status=1
    elif ! grep -qF -e "$1" "$work/out"; then
        echo "the compiler does not say '$1' of: $2"
        cat "$work/out"
        status=1
    fi
}

include=$1
cc=$2
right='CAPU_LAUNCHER(right, (float *, x, writes, count), (int, count, value)) { x[0] = (float)count; }'
compiles "$right" "$cc" "$include" || { cat "$work/out"; status=1; }
compiles "static $right int main(void) { return right(0, 0); }" "$cc" "$include" || { cat "$work/out"; status=1; }
rejects capu_role_is_read 'CAPU_LAUNCHER(f, (float *, x, read)) { (void)x; }'
rejects capu_role_is_ 'CAPU_LAUNCHER(f, (float *, x)) { (void)x; }'
rejects const 'CAPU_LAUNCHER(f, (const float *, x, writes)) { (void)x; }'
rejects const 'CAPU_LAUNCHER(f, (const float *, x, updates)) { (void)x; }'
rejects capu_launch_reads 'CAPU_LAUNCHER(f, (int, x, reads)) { (void)x; }'
rejects missing 'CAPU_LAUNCHER(f, (float *, x, reads, missing)) { (void)x; }'
rejects library 'void library(float *x, int n); CAPU_WRAPPER(f, library, (float *, x, reads));'
rejects unused "$right void f(float *x); void f(float *x) { right(x, 1); }"
exit $status
