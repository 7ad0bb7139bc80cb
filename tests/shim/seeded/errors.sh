#!/bin/bash
# errors.sh COMMAND LIBRARIES TRAPS PRODUCTS GPT STEPS REPEATS: COMMAND runs programs with a library in which errors can be
# switched on (errors.c). Each error must be found in each of the ways that its line below names, and without any the programs must
# print what they print alone.
set -u
command=$1 libraries=$2 traps=$3 products=$4 gpt=$5 steps=$6 repeats=$7
. "${0%/*}/../within.bash"

# compare WORD...: a run of the words whose launches are compared with the operands that are declared. The result is the
# exit code and whether the output is the same as alone.
compare() {
    rm -f "$work/operands"
    PTX_DRIVER_OPERANDS=$work/operands "$command" run --operands "$work/operands" --budget "$budget" "$@" \
        >"$work/output" 2>"$work/messages"
    result $?
}

# In guided mode, where all that a launch touches is compared, too.
guided() {
    rm -f "$work/operands"
    CAPUCHIN_WAIT_FOR_PLAN=1 PTX_DRIVER_OPERANDS=$work/operands "$command" run --operands "$work/operands" \
        --mode guided --report "$work/report" --budget "$budget" "$@" >"$work/output" 2>"$work/messages"
    result $?
}

strict() {
    "$command" run --strict --budget "$budget" "$@" >"$work/output" 2>"$work/messages"
    result $?
}

result() {
    result="$1 other"
    cmp -s "$work/alone" "$work/output" && result="$1 same"
}

# plain BUDGET WORD...: what the following errors are made in.
plain() {
    budget=$1
    shift
    words=("$@")
    "${words[@]}" >"$work/alone" || fail "${words[*]} alone: exit code $?"
}

# program BUDGET WORD...: the same; first it must run without an error, in all ways.
program() {
    plain "$@"
    for way in compare strict; do
        "$way" "${words[@]}"
        [ "$result" = '0 same' ] && [ ! -s "$work/messages" ] || fail "${words[*]}, $way, without an error: $result"
    done
}

# finds ERROR WAY RESULT [TEXT]: the way of running ends with the result and prints the text.
finds() {
    SHIM_ERROR=$1 "$2" "${words[@]}"
    [ "$result" = "$3" ] || fail "$1 in ${words[*]}, $2: $result, not $3"
    grep -q -e "${4:-}" "$work/messages" || [ -z "${4:-}" ] || fail "$1 in ${words[*]}, $2: no line '$4'"
}

# An operand that is missing, too short, or has the wrong role.
program 150000 "$traps" triangle in_place
finds missed_read compare '99 other' 'triangle.* loads what is not declared'
finds missed_read strict '1 other' "touched tensor .* which it does not name"
finds missed_store compare '99 other' 'triangle.* stores to what is declared to be read'
finds missed_store strict '1 other' 'has changed .* which it says it only reads'
finds short_word compare '99 other' 'triangle.* loads what is not declared: 4 bytes'
# A store that is taken for a whole write.
finds whole_write compare '99 other' 'triangle.* is declared to write .*, but does not store'
finds whole_write strict '1 other' 'unwritten, .* which it says it writes all of'
# The same, by what a slice has found. Launches are repeated in the second round.
finds gaps_missed compare '99 other' 'triangle.* is declared to write .*, but does not store'
finds gaps_missed strict '1 other' 'unwritten, .* which it says it writes all of'
finds reads_missed compare '99 other' 'scale.* loads from what is declared to be written: 4 bytes'
finds reads_missed strict '0 other'

# What a slice has found for another launch: with other numbers, pointers, or in another shape.
program 300000 "$traps" lengths optional shapes
finds stale_number compare '99 other' 'add_to.* loads what is not declared: 4 bytes'
finds stale_pointer compare '99 other' 'optional_operands.* loads what is not declared'
finds stale_pointer strict '1 other' "touched tensor .* which it does not name"
finds stale_shape compare '99 other' 'scale.* loads what is not declared'

# And with other variables.
program 504629 "${traps%/*}/indices"
finds stale_variable compare '99 other' 'copy_window.* loads what is not declared: 4 bytes'
finds stale_index compare '99 other' 'sum_segments.* loads what is not declared: 4 bytes'

# Large allocations are several tensors. So half of a range can be whole pages, which strict mode takes away.
program 2300000 "$gpt" 1
finds short_half compare '99 other' 'loads what is not declared'
finds short_half strict '1 other' "touched tensor .* which it does not name"

# Iterations that are none cost time; the results are the same.
plain 1500000 "$gpt" 3
finds wrong_period guided '0 same'
iterations=$(reported 'iterations: ')
[ "$iterations" -gt 30 ] || fail "only $iterations wrong iterations"
grep -Eq '^iterations that left their plan: [1-9]' "$work/report" || fail "no wrong iteration was planned"

# A product that adds to its result. In strict mode, what is to be written is poisoned.
program 278528 "$products"
finds beta_missed compare '99 other' 'loads from what is declared to be written: 4 bytes'
finds beta_missed strict '0 other'
finds short_word compare '99 other' 'loads what is not declared: 4 bytes'

# Steps of which some read what others overwrite, and keep what others free. Whether a plan has the memory for something
# else by then is a matter of times, so errors have to be found within one of several budgets.
finds_guided() {
    for budget in 2048000 1740800 614400; do
        guided "${words[@]}"
        [ "$result" = '0 same' ] || fail "${words[*]}, guided, without an error: $result"
        SHIM_ERROR=$1 guided "${words[@]}"
        [ "$result" = '0 same' ] || break
    done
    [ "$result" = '1 other' ] && grep -q 'discarded by a plan that is no longer followed' "$work/messages" ||
        fail "$1 in ${words[*]}, guided: $result"
}
words=("$steps" steps 12)
"${words[@]}" >"$work/alone" || fail "${words[*]} alone: exit code $?"
finds_guided kept_nothing
finds_guided silent_free

# Launches that are repeated where they must not be: by plans that repeat whatever they can.
recomputed() {
    CAPUCHIN_PLANNER=recompute guided --recompute "$@"
}
plain 737000 "$repeats"
recomputed "${words[@]}"
[ "$result" = '0 same' ] || fail "${words[*]}, recomputed, without an error: $result"
budget=589000
finds constant_missed recomputed '0 other'
finds pinned_missed recomputed '0 other'
echo "all errors were found"
