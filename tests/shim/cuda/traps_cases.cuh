// The cases of a program of traps: those that its arguments name, or all that need not be named.
#ifndef TRAPS_CASES_CUH
#define TRAPS_CASES_CUH

#include "tests/shim/cuda/traps_memory.cuh"

#include <cstring>

struct Case {
    const char *name;
    void (*run)();
    bool is_named_only;
};

static bool is_chosen(const Case &one, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], one.name) == 0) {
            return true;
        }
    }
    return argc == 1 && !one.is_named_only;
}

// Runs them twice, and prints what they have computed, at the end all of it again.
static int run_cases(const Case *cases, size_t count, int argc, char **argv)
{
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < count; i++) {
            if (is_chosen(cases[i], argc, argv)) {
                cases[i].run();
            }
        }
    }
    for (const Result &result : results) {
        print_result(result);
    }
    return 0;
}

#endif
