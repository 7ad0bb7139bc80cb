# Source this file. runs_all_cases: whether a script runs all of its cases, as `make test-long`
# does, or a sample. TEST_EFFORT is a percentage, as in effort.h.
runs_all_cases() {
    [ "${TEST_EFFORT:-10}" -ge 50 ]
}
