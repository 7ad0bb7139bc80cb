# For the tests of training programs: sourced by them, with WORK-FOLDER BUDGET PROGRAM [OPTION...] as
# arguments. Sets $work, empty, and $budget; the program and its options remain.
. "$(dirname "$0")/../support/numbers.sh"
work=$1
budget=$2
shift 2
rm -rf "$work" && mkdir -p "$work" || exit 1

fail() {
    echo "$(basename "$0"): $*"
    exit 1
}

# run NAME PROGRAM [OPTION...]: runs the program and keeps its losses, weights and report.
run() {
    name=$1
    shift
    "$@" --loss-log "$work/$name.log" --save "$work/$name.weights" --report "$work/$name.report" \
        >"$work/$name.out" 2>&1 || fail "$name failed: $(cat "$work/$name.out")"
}
