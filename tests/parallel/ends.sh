#!/bin/bash
# ends.sh RANKS-SCRIPT PROGRAM: runs the cases of ends_test and checks what the ranks that are left have
# seen. Each case, with its launcher, takes less than 10 s on an idle machine.
set -u
ranks=$1
program=$2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0
folder=
case=

complain() {
    echo "$case: $*"
    failed=1
}

# run CASE COUNT [OPTION...]: runs a case; its files are in $folder.
run() {
    case=$1
    folder=$work/$1
    mkdir -p "$folder"
    timeout -k 1 100 "$ranks" "$2" "${@:3}" "$program" "$1" "$folder" >"$folder/out" 2>&1
    case $? in
    124 | 137) complain "did not end within 100 s" ;;
    77)
        cat "$folder/out"
        exit 77
        ;;
    esac
    ! grep -E '^rank [0-9]+, ' "$folder/out" || complain "a check failed"
}

# saw RANK TEXT: that rank has ended with this error.
saw() {
    grep -q "^CAPU_OP_FAILED: .*$2" "$folder/seen.$1" 2>/dev/null ||
        complain "rank $1 has not seen '$2' but: $(cat "$folder/seen.$1" 2>&1)"
}

# whole COUNT: each report file has at least so many lines, all of them whole.
whole() {
    local file
    for file in "$folder"/report.*; do
        [ "$(grep -c '^{.*}$' "$file")" -ge "$1" ] && ! grep -qv '^{.*}$' "$file" && [ -z "$(tail -c 1 "$file")" ] ||
            complain "${file##*/} has $(wc -l <"$file") lines, or one that is cut off"
    done
}

# mpirun would end the others when one has ended; with recovery it lets them go on.
run killed 4 --enable-recovery
for rank in 0 1 2; do
    saw "$rank" "'sum of gradients': rank 3 has ended"
done
whole 2

run ended 2 --enable-recovery
saw 0 "'sum of gradients': rank 1 has ended"
whole 2

# Here it does end them, when it gets round to it: some may see the end, and all files are whole.
run writing 2
whole 2

run silent 2
saw 1 "'sum of gradients': rank 0 has not answered within the limit"

run order 2
saw 1 "'sum of x': rank 0 has not answered within the limit"

# Without a launcher.
case=wrong
"$program" wrong >"$work/out" 2>&1 || complain "$(cat "$work/out")"
exit $failed
