#!/bin/bash
# waits.sh [FIRST [LAST]]: which suites find that a wait is missing. Makes a copy of the sources in build/seeded, leaves out one wait of
# waits.txt at a time, builds the suites and runs them as often as `make test` does. Prints a table row for each wait; fails if a wait is
# found by no suite. Takes about a minute per wait.
set -u
cd "${0%/*}/../../.." || exit 2
root=$PWD
first=${1:-1} last=${2:-1000}
copy=$root/build/seeded
export TEST_EFFORT=${TEST_EFFORT:-5} CK_TIMEOUT_MULTIPLIER=4
suites=(order guided_program random_program graph_program_cuda order_cuda guided_program_cuda random_program_cuda)
api=(cuda strict budget split realloc uploads downloads unplaced small graphs returns returns_cuda graphs_cuda)

mkdir -p "$copy"
git ls-files -z | tar --null -T - -c | tar -x -m -C "$copy" || exit 2
cd "$copy" || exit 2
cmake --preset debug -B "$copy/out" >out.log 2>&1 || { cat out.log; exit 2; }

# Which programs of a list exist: not every suite runs on both devices.
programs_of() {
    local name

    for name in "$@"; do
        ninja -C out -t targets all | grep -q "^tests/${name}_test: " && echo "tests/${name}_test"
    done
}

mapfile -t stress < <(programs_of "${suites[@]/#order/api_order}")
mapfile -t calls < <(programs_of "${api[@]/#/api_}")

# find_fault: prints the first program that fails, and how. Each is built when its turn comes.
find_fault() {
    local program name message

    for program in "${stress[@]}" "${calls[@]}"; do
        if ! ninja -C out "$program" >out.log 2>&1; then
            echo "**does not build** |"
            return
        fi
        if ! timeout 120 "out/$program" >run.log 2>&1; then
            name=${program#tests/}
            message=$(sed -n 's/^[^ ]*:[FE]:[^:]*:[^:]*:[0-9]*: //p' run.log | head -1 | cut -c1-60)
            echo "${name%_test} | ${message:-does not end}"
            return
        fi
    done
}

missed=0
number=0
echo "| wait that is left out | file | found first by | how |"
echo "| --- | --- | --- | --- |"
while IFS=$'\t' read -r what file from to; do
    case $what in '#'*) continue ;; esac
    number=$((number + 1))
    [ "$number" -ge "$first" ] && [ "$number" -le "$last" ] || continue
    cp "$file" was
    FROM=$from TO=$to perl -0777 -pi -e 's/$ENV{FROM}/$ENV{TO}/' "$file"
    if cmp -s "$file" was; then
        echo "| $what | $file | **the line is not there any more** | |"
        missed=$((missed + 1))
        continue
    fi
    found=$(find_fault)
    case $found in
    '') found="**nothing** |" missed=$((missed + 1)) ;;
    *build*) missed=$((missed + 1)) ;;
    esac
    echo "| $what | $file | $found |"
    cp was "$file"
done <"$root/tests/stress/seeded/waits.txt"
[ "$missed" -eq 0 ]
