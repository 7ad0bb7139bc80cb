/*
 * The options that all training examples share, as an argp parser. An example makes it a child of
 * its own parser, and passes a struct options as the child's input.
 */
#ifndef CAPU_EXAMPLES_COMMON_OPTIONS_H
#define CAPU_EXAMPLES_COMMON_OPTIONS_H

#include "capuchin/context.h"

#include "kernels/element.h"

#include <argp.h>

#include <stdbool.h>

/* Exit codes of all examples. */
enum { OPTIONS_EXIT_OK = 0, OPTIONS_EXIT_FAILED = 1, OPTIONS_EXIT_USAGE = 2 };

enum budget_kind { BUDGET_NONE, BUDGET_BYTES, BUDGET_PERCENT };

/* The strings are those of argv. */
struct options {
    const char *device; /* NULL: not given */
    enum budget_kind budget_kind;
    uint64_t budget_bytes;   /* BUDGET_BYTES */
    unsigned budget_percent; /* BUDGET_PERCENT: of the run's own unconstrained peak */
    capu_mode mode;          /* CAPU_MODE_DEFAULT: not given, so the environment decides */
    const char *planner;     /* NULL: not given */
    const char *effort;      /* NULL: not given */
    bool waits_for_plan;
    uint32_t batch;
    uint32_t steps;
    uint32_t validate_every; /* 0: not given */
    uint64_t seed;
    const char *loss_log;
    const char *save;
    const char *report;
    const char *trace;
    const char *plan;
    bool is_strict;
};

extern const struct argp options_argp;

/*
 * Parses argv with the example's parser, which has options_argp among its children. Ends the
 * program for --help (0) and for bad usage (2).
 */
void options_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Reads a whole number between `low` and `high`, or ends the program as argp_error does. */
uint64_t options_number(struct argp_state *state, const char *name, const char *text, uint64_t low,
                        uint64_t high);

/* Reads "fp32" or "bf16", or ends the program as argp_error does. */
enum element options_dtype(struct argp_state *state, const char *text);

#endif
