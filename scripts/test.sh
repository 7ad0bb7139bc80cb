#!/bin/bash
# Builds and runs all tests: plain, under ASan and UBSan, under TSan; builds once with clang. Prints a
# summary a kind and, last, one line over all. Fails if anything failed.
#
# TEST_PROGRAMS and TEST_SEED reach the random programs (tests/stress).
set -u
cd "$(dirname "$0")/.." || exit 1
jobs=${JOBS:-$(nproc)}
passed=0
failed=0
skipped=0

# An attribute of the first element in a JUnit file.
attribute() {
    sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -1
}

# build FOLDER ARGUMENT...: configures with the arguments and builds; a failure counts as one.
build() {
    local folder=$1
    local log=build/$1.log
    shift

    mkdir -p build
    if ! cmake "$@" -B "build/$folder" >"$log" 2>&1 ||
        ! cmake --build "build/$folder" --parallel "$jobs" >>"$log" 2>&1; then
        tail -n 60 "$log"
        echo "$folder: does not build, see $log"
        failed=$((failed + 1))
        return 1
    fi
}

# run PRESET PROGRAMS: builds a preset and runs its tests, with so many random programs.
run() {
    local preset=$1
    local results=$PWD/build/$1/results.xml
    local all bad skip

    echo "== $preset"
    build "$preset" --preset "$preset" || return
    rm -f "$results"
    TEST_PROGRAMS=${TEST_PROGRAMS:-$2} ctest --test-dir "build/$preset" \
        --parallel "$jobs" --output-on-failure --output-junit "$results" 2>&1 |
        grep -Ev '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed )'
    all=$(attribute tests "$results")
    bad=$(attribute failures "$results")
    skip=$(($(attribute skipped "$results") + $(attribute disabled "$results")))
    if [ -z "$all" ] || [ "$all" -eq 0 ]; then
        echo "$preset: no test ran"
        failed=$((failed + 1))
        return
    fi
    echo "$preset: $((all - bad - skip)) passed, $bad failed, $skip skipped"
    passed=$((passed + all - bad - skip))
    failed=$((failed + bad))
    skipped=$((skipped + skip))
}

run debug 1000
run asan 400
run tsan 150

echo "== clang"
if command -v clang >/dev/null 2>&1; then
    # Only to be warned: quickly, and without what nvcc compiles anyhow.
    build clang --preset debug -DCMAKE_C_COMPILER=clang -DCMAKE_C_FLAGS_DEBUG= -DCAPUCHIN_CUDA=OFF && {
        echo "clang: no warnings"
        passed=$((passed + 1))
    }
else
    echo "clang: skipped, it is not installed"
    skipped=$((skipped + 1))
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
