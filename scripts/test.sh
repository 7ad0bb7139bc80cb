#!/bin/bash
# scripts/test.sh check|test|long: builds and runs tests. Prints a summary per build and finally one
# line for all. Fails if anything failed.
#
#   check  the plain build: unit tests, device contract, API, idioms, rules and documents
#   test   all tests plain, a sample under ASan and UBSan, a sample under TSan; warnings of clang
#   long   the same with all training runs plain and larger samples, then 20,000 random programs
#
# TEST_EFFORT is the percentage of its repetitions that a test runs (tests/support/effort.h). If set,
# it replaces the efforts below. TEST_PROGRAMS and TEST_SEED control the random programs
# (tests/stress).
set -u
cd "$(dirname "$0")/.." || exit 1
tier=${1:-test}
jobs=${JOBS:-$(nproc)}
# More tests than cores: some mostly wait for streams whose operations take a fixed time.
test_jobs=$((jobs + 1))
# The kernels use one thread of OpenBLAS; the others of a process spin for a while and then wait.
export OPENBLAS_NUM_THREADS=1
# What configures contexts of the user does not configure those of the tests.
unset "${!CAPUCHIN_@}"
# What the machine of tests/ptx compiles depends on neither the build nor the run.
export PTX_CACHE=${PTX_CACHE:-$PWD/build/ptx-cache}
passed=0
failed=0
skipped=0

# attribute NAME FILE: prints an attribute of the first element in a JUnit file.
attribute() {
    sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -1
}

# count PASSED FAILED SKIPPED: adds to the totals.
count() {
    passed=$((passed + $1))
    failed=$((failed + $2))
    skipped=$((skipped + $3))
}

# build PRESET: configures and builds; a failure counts as one failed test.
build() {
    local log=build/$1.log

    mkdir -p build
    if ! cmake --preset "$1" >"$log" 2>&1 ||
        ! cmake --build "build/$1" --parallel "$jobs" >>"$log" 2>&1; then
        tail -n 60 "$log"
        echo "$1: does not build, see $log"
        count 0 1 0
        return 1
    fi
}

# run PRESET EFFORT [CTEST-OPTION...]: builds a preset and runs its tests, or the selected ones.
run() {
    local preset=$1
    local effort=${TEST_EFFORT:-$2}
    local results=$PWD/build/$1/results.xml
    local all bad skip
    shift 2

    echo "== $preset, effort $effort %"
    build "$preset" || return
    rm -f "$results"
    TEST_EFFORT=$effort ctest --test-dir "build/$preset" --parallel "$test_jobs" --output-on-failure \
        --output-junit "$results" "$@" 2>&1 |
        grep -Ev '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed )'
    all=$(attribute tests "$results")
    bad=$(attribute failures "$results")
    skip=$(($(attribute skipped "$results") + $(attribute disabled "$results")))
    if [ -z "$all" ] || [ "$all" -eq 0 ]; then
        echo "$preset: no test ran"
        count 0 1 0
        return
    fi
    echo "$preset: $((all - bad - skip)) passed, $bad failed, $skip skipped"
    count $((all - bad - skip)) "$bad" "$skip"
}

# Prints the compiler calls of the plain build for .c files, changed to clang without output files. Except in the
# long tier, only those of what is installed or shown to users, not of tests and benches.
clang_calls() {
    sed -n 's/^ *"command": "\(.*\)",\{0,1\}$/\1/p' build/debug/compile_commands.json |
        sed 's/\\\(.\)/\1/g' | grep '\.c$' |
        { [ "$tier" = long ] && cat || grep -v " $PWD/\(tests\|bench\)/[^ ]*$"; } |
        sed 's/^\([^- ][^ ]* \)*-/clang -/; s/ -o [^ ]* -c / -fsyntax-only /'
}

# Checks for warnings of clang only, so no code is generated.
look_with_clang() {
    local log=build/clang.log

    echo "== clang"
    if ! command -v clang >/dev/null 2>&1; then
        echo "clang: skipped, it is not installed"
        count 0 0 1
    elif [ -f build/debug/compile_commands.json ] && [ "$(clang_calls | wc -l)" -gt 0 ] &&
        clang_calls | xargs -d '\n' -P "$jobs" -n 1 sh -c >"$log" 2>&1; then
        echo "clang: no warnings"
        count 1 0 0
    else
        tail -n 60 "$log"
        echo "clang: warnings or errors, see $log"
        count 0 1 0
    fi
}

# many_programs TEST COUNT: random programs under ASan and UBSan.
many_programs() {
    if scripts/many_programs.sh build/asan "$@"; then
        count 1 0 0
    else
        count 0 1 0
    fi
}

case $tier in
check)
    # Below 5 %, the table of waits (tests/api/order) has a tenth of its cells.
    run debug 4 -L '^(unit|contract|api|idioms|rules|docs)$' -LE '^(long|gpu)$'
    ;;
test)
    run debug 5 -LE '^long$'
    run asan 2 -LE '^long$'
    run tsan 2 -LE '^long$'
    look_with_clang
    ;;
long)
    run debug 50
    run asan 20
    run tsan 10
    look_with_clang
    many_programs random_program_test 20000
    many_programs guided_program_test 2000
    ;;
*)
    sed -n '2,/^set -u/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
    ;;
esac

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
