#!/bin/bash
# unmodified.sh COMMAND LIBRARIES PROGRAM PERCENT...: runs two steps of an unmodified CUDA program over the driver in
# LIBRARIES, alone and by `COMMAND run` within each percentage of the memory that it allocates alone.
# Within each one also strict, and for the first one on a device that has no more memory than that, on
# which the program alone fails. What it prints must be the same to the byte.
set -u
command=$1 libraries=$2 program=$3
shift 3
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$libraries PTX_DRIVER_FOREIGN=1 CAPUCHIN_DEVICE=host

fail() {
    echo "$*"
    cat "$work/messages" 2>/dev/null
    exit 1
}

# under OPTION...: the command, whose launches are compared, access by access, with the operands that it declares; but
# in strict mode differences have to fault.
under() {
    rm -f "$work/operands"
    case "$*" in
    *--strict*) "$command" run "$@" ;;
    *) PTX_DRIVER_OPERANDS=$work/operands "$command" run --operands "$work/operands" "$@" ;;
    esac
}

# run OPTION...: one run under the command; its output must be that of the run alone.
run() {
    under --report "$work/report" "$@" -- "$program" 2 >"$work/output" 2>"$work/messages" ||
        fail "run $*: exit code $?"
    cmp "$work/alone" "$work/output" || fail "run $*: the output differs"
    [ ! -s "$work/messages" ] || fail "run $*: messages"
    grep -Eq '^launches: [1-9][0-9]* of closed kernels, 0 of open ones$' "$work/report" ||
        fail "run $*: $(cat "$work/report")"
    ! grep -Eq '^slice of .*: none|without results' "$work/report" || fail "run $*: $(cat "$work/report")"
}

"$program" 2 >"$work/alone" || fail "alone: exit code $?"
run --mode off
grep -q '^100 done$' "$work/operands" || fail "hardly anything was compared"
# Its allocations, and cuBLAS's workspace if it uses that, which come out of the same budget.
others=$(sed -n 's/^taken by others: .* at most //p' "$work/report")
peak=$(($(sed -n 's/^allocations at the end: .* at most //p' "$work/report") + others))
[ "$peak" -gt 1000000 ] || fail "it allocates $peak bytes"
device=
for percent in "$@"; do
    budget=$((peak * percent / 100))
    run --budget "$budget"
    held=$(sed -n 's/^peak: \([0-9]*\) bytes.*/\1/p' "$work/report")
    [ "$held" -le $((budget - others)) ] || fail "within $budget bytes, it held $held, and others $others"
    [ "$held" -gt $((budget / 2)) ] || fail "within $budget bytes, it held only $held"
    run --budget "$budget" --strict
    if [ -z "$device" ]; then
        device=$budget
        if PTX_DRIVER_MEMORY=$device "$program" 2 >"$work/small" 2>"$work/messages"; then
            fail "alone, it runs in $device bytes"
        fi
        PTX_DRIVER_MEMORY=$device run --budget "$budget"
    fi
done
echo "the same output within $* % of $peak bytes"
