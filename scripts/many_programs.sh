#!/bin/bash
# scripts/many_programs.sh FOLDER TEST COUNT [SEED]: runs COUNT random programs of each kind of a test
# in a build folder (random_program_test, guided_program_test), one process per core (JOBS) at a time.
# Each core has a share of the seeds from SEED on (1). A failure prints the end of its log, which
# FOLDER/TEST-I.log keeps, with the seed that gives the same program again.
set -u
cd "$(dirname "$0")/.." || exit 1
folder=$1
test=$2
jobs=${JOBS:-$(nproc)}
jobs=$((jobs < $3 ? jobs : $3))
share=$((($3 + jobs - 1) / jobs))
first=${4:-1}
# Programs per process: Check cannot note a test that takes more than 71 minutes.
piece=2000
pids=()
failed=0

# run_share FIRST LAST: the seeds of a share, up to the first piece that fails.
run_share() {
    local seed

    for ((seed = $1; seed <= $2; seed += piece)); do
        TEST_SEED=$seed TEST_PROGRAMS=$(($2 - seed + 1 < piece ? $2 - seed + 1 : piece)) CK_DEFAULT_TIMEOUT=7200 \
            CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-20} ASAN_OPTIONS=handle_segv=0 "$folder/tests/$test" || return 1
    done
}

echo "== $test: $3 random programs of each kind in $folder"
for ((i = 0; i < jobs; i++)); do
    run_share $((first + i * share)) $((first + (i + 1) * share - 1)) >"$folder/$test-$i.log" 2>&1 &
    pids+=($!)
done
for ((i = 0; i < jobs; i++)); do
    if ! wait "${pids[i]}"; then
        failed=1
        tail -n 20 "$folder/$test-$i.log"
    fi
done
exit "$failed"
