# Runs of programs within a budget, for scripts that set $command, the command, and $libraries, the folder of the
# driver. What they print has to be what they print alone, to the byte.
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$libraries PTX_DRIVER_FOREIGN=1 CAPUCHIN_DEVICE=host

fail() {
    echo "$*"
    cat "$work/messages" "$work/report" 2>/dev/null
    exit 1
}

# reported TEXT: the number that follows it in the report.
reported() {
    sed -n "s/^$1\([0-9]*\).*/\1/p" "$work/report"
}

# under OPTION...: the command, whose launches are compared, access by access, with the operands that it declares; but
# in strict mode differences have to fault.
under() {
    rm -f "$work/operands"
    case "$*" in
    *--strict*) "$command" run "$@" ;;
    *) PTX_DRIVER_OPERANDS=$work/operands "$command" run --operands "$work/operands" "$@" ;;
    esac
}

# run BUDGET WORD...: one run of the words, an option of the command first where one is given.
run() {
    local budget=$1
    shift
    under --report "$work/report" --budget "$budget" "$@" >"$work/output" 2>"$work/messages" ||
        fail "$*: exit code $?"
    cmp "$work/alone" "$work/output" || fail "$* within $budget: the output differs"
    [ ! -s "$work/messages" ] || fail "$*: messages"
    [ "$(reported 'peak: ')" -le "$budget" ] || fail "$*: more than $budget was held"
}

# Stores what the words print alone, and what they allocate.
measure() {
    "$@" >"$work/alone" || fail "$* alone: exit code $?"
    under --report "$work/report" --mode off "$@" >"$work/output" 2>"$work/messages" || fail "$*: --mode off"
    cmp "$work/alone" "$work/output" || fail "$* --mode off: the output differs"
    peak=$(reported 'allocations at the end: [0-9]* bytes, at most ')
}
