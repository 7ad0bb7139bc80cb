#!/bin/bash
# scripts/fuzz.sh PROGRAMS SEED: many random programs without plans and in guided mode, under ASan and
# UBSan, then under TSan. A failure prints its seed, which gives the same program again. All assertions
# are compiled in, so the builds are not those of the tests.
set -u
cd "$(dirname "$0")/.." || exit 1
export CK_TIMEOUT_MULTIPLIER=1000
for preset in asan tsan; do
    folder=build/fuzz-$preset
    cmake --preset "$preset" -B "$folder" -DCAPUCHIN_ASSERTIONS=expensive >/dev/null &&
        cmake --build "$folder" --parallel --target random_program_test guided_program_test \
            >/dev/null || exit 1
    for test in random_program_test guided_program_test; do
        scripts/many_programs.sh "$folder" "$test" "${1:-20000}" "${2:-1}" || exit 1
    done
done
