#!/bin/bash
# scripts/demo_unmodified.sh BUILD: runs a CUDA program that knows nothing of the library, without a GPU:
# alone on a device that is too small for it, and there by `capuchin run`, in passive and in guided mode. Its
# device code is executed by the test driver of tests/ptx.
set -u
build=$(cd "$1" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
program=$build/tests/ptx/classifier
steps=${STEPS:-8}
memory=900KiB
export LD_LIBRARY_PATH=$build/tests/ptx/lib PTX_DRIVER_FOREIGN=1 CAPUCHIN_DEVICE=host

fail() {
    echo "demo: $*" >&2
    exit 1
}

[ -x "$program" ] || fail "$program is not built (it needs a C++ compiler)"
echo "$(basename "$program") on a device with ample memory:"
"$program" "$steps" | tee "$work/ample" || fail "the program failed"
echo
echo "The same on a device with $memory:"
if PTX_DRIVER_MEMORY=$memory "$program" "$steps" 2>&1; then
    fail "it fits, which was not expected"
fi
echo
echo "The same program there, by capuchin run --budget 800KiB:"
PTX_DRIVER_MEMORY=$memory "$build/bin/capuchin" run --budget 800KiB --report "$work/report" -- \
    "$program" "$steps" | tee "$work/small"
[ "${PIPESTATUS[0]}" -eq 0 ] || fail "the program failed within the budget"
cmp "$work/ample" "$work/small" || fail "the outputs DIFFER"
echo
echo "Outputs: identical, $(wc -c <"$work/ample") bytes. The report:"
cat "$work/report"
echo
echo "And in guided mode, which finds the program's iterations and plans them:"
PTX_DRIVER_MEMORY=$memory "$build/bin/capuchin" run --mode guided --budget 800KiB --report "$work/report" \
    --iterations "$work/iterations" -- "$program" "$steps" >"$work/guided" || fail "the program failed in guided mode"
cmp "$work/ample" "$work/guided" || fail "the outputs DIFFER"
echo "Outputs: identical. From the report:"
sed -n '/^iterations: /,/^stalls: /p' "$work/report"
echo
"$build/bin/capuchin" explain "$work/iterations"
