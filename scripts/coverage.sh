#!/bin/bash
# scripts/coverage.sh: prints the share of lines of the cuda device that its tests over the fake
# runtime execute, by file and in total. The marks are not counted, since a build without a toolkit
# omits them. Needs gcc and gcov, but no toolkit. Fails below 85 percent, or if a test fails.
set -u
cd "$(dirname "$0")/.." || exit 1
folder=build/coverage
tests="device_cuda_test device_cuda_loss_test device_contract_cuda_test fault_cuda_test traps_cuda_test"
mkdir -p "$folder"

# shellcheck disable=SC2086 # split into words on purpose
if ! cmake --preset debug -B "$folder" -DCMAKE_C_FLAGS=--coverage -DCMAKE_C_FLAGS_DEBUG=-g \
    -DCAPUCHIN_CUDA=OFF \
    >"$folder/build.log" 2>&1 ||
    ! cmake --build "$folder" --parallel "${JOBS:-$(nproc)}" --target $tests >>"$folder/build.log" 2>&1; then
    tail -n 40 "$folder/build.log"
    exit 1
fi
find "$folder" -name '*.gcda' -delete
ctest --test-dir "$folder" -R "^(${tests// /|})\$" --output-on-failure >"$folder/tests.log" 2>&1 || {
    cat "$folder/tests.log"
    exit 1
}

find "$folder" -path '*capuchin_device_fake*' -name 'cuda*.gcda' | sort | xargs gcov -n 2>/dev/null |
    awk '
    /^File / { file = $2; gsub(/\047/, "", file); sub(/.*\/device\//, "device/", file) }
    /^Lines executed:/ && file ~ /^device\/cuda[a-z_]*\.c$/ && file !~ /marks/ {
        split($0, part, /[:%]/)
        share = part[2]
        count = $NF
        printf "%-24s %6.2f %% of %d lines\n", file, share, count
        executed += share * count / 100
        lines += count
        file = ""
    }
    END {
        if (lines == 0) { print "no line was counted"; exit 1 }
        printf "%-24s %6.2f %% of %d lines\n", "device/cuda*.c", 100 * executed / lines, lines
        exit 100 * executed / lines < 85
    }'
