#!/bin/bash
# scripts/coverage.sh: the share of lines and branches that the tests execute, per room and for the
# cuda device over the fake runtime. Examples and documents run nothing that counts here. Per file it
# is in build/coverage/files.csv. Fails if a test fails, or if the tests execute less than 85 % of the
# cuda device's lines, which no test on a machine without a GPU would miss otherwise.
#
# Needs gcc and gcovr, and no toolkit. TEST_EFFORT and TEST_PROGRAMS as for scripts/test.sh.
set -u
cd "$(dirname "$0")/.." || exit 1
folder=build/coverage
jobs=${JOBS:-$(nproc)}
rooms="base device allocator policy runtime models kernels interpose shim tools"
# Threads and forked tests count in the same places.
flags="--coverage -fprofile-update=atomic"
mkdir -p "$folder"

# Without assertions: their failing branches are not meant to be executed. Not optimised, so that each
# line is counted for itself; gcc then warns of what it cannot follow.
if ! cmake --preset debug -B "$folder" "-DCMAKE_C_FLAGS=$flags" "-DCMAKE_CXX_FLAGS=$flags" \
    -DCMAKE_C_FLAGS_DEBUG=-g -DCAPUCHIN_ASSERTIONS=off -DCAPUCHIN_WERROR=OFF \
    -DCAPUCHIN_CUDA=OFF >"$folder/build.log" 2>&1 ||
    ! cmake --build "$folder" --parallel "$jobs" >>"$folder/build.log" 2>&1; then
    tail -n 40 "$folder/build.log"
    exit 1
fi
find "$folder" -name '*.gcda' -delete
TEST_EFFORT=${TEST_EFFORT:-20} CK_TIMEOUT_MULTIPLIER=4 ctest --test-dir "$folder" --parallel "$jobs" \
    -LE '^(long|examples|rules|docs|package|gpu)$' --output-on-failure >"$folder/tests.log" 2>&1 || {
    cat "$folder/tests.log"
    exit 1
}

filters=()
for room in $rooms; do
    filters+=(--filter "$room/.*\.c\$")
done
gcovr --root . --object-directory "$folder" "${filters[@]}" -j "$jobs" \
    --exclude-unreachable-branches --csv "$folder/files.csv" "$folder" >"$folder/gcovr.log" 2>&1 || {
    tail -n 40 "$folder/gcovr.log"
    exit 1
}

# Columns: file, lines, executed lines, share, branches, executed branches, share.
awk -F, -v rooms="$rooms" '
    function row(name) {
        printf "%-16s %7d %8.2f %% %9d %8.2f %%\n", name, lines[name],
            100 * executed[name] / lines[name], branches[name],
            (branches[name] > 0 ? 100 * taken[name] / branches[name] : 100)
    }
    function add(name) {
        lines[name] += $2
        executed[name] += $3
        branches[name] += $5
        taken[name] += $6
    }
    NR > 1 {
        split($1, path, "/")
        add(path[1])
        if ($1 ~ /^(base|device|allocator|policy|runtime)\//) add("library")
        if ($1 ~ /^device\/cuda[a-z_]*\.c$/ && $1 !~ /marks|absent/) add("device/cuda*.c")
    }
    END {
        if (lines["library"] == 0 || lines["device/cuda*.c"] == 0) { print "no line was counted"; exit 1 }
        printf "%-16s %7s %10s %9s %10s\n", "room", "lines", "executed", "branches", "executed"
        count = split(rooms " library device/cuda*.c", names, " ")
        for (i = 1; i <= count; i++) if (lines[names[i]] > 0) row(names[i])
        exit 100 * executed["device/cuda*.c"] / lines["device/cuda*.c"] < 85
    }' "$folder/files.csv"
