/*
 * A training run's context: what its budget is, whether it can run in it, and what it used.
 *
 * A budget is checked before training begins: a dry run of one iteration on the sim device, which
 * has no memory and takes milliseconds, tells what the run needs without a limit and what it needs
 * at least.
 */
#ifndef CAPU_EXAMPLES_COMMON_RUN_H
#define CAPU_EXAMPLES_COMMON_RUN_H

#include "capuchin/capuchin.h"

#include "examples/common/options.h"

/* Makes everything a run makes and does one training iteration; on a context of its own. */
typedef capu_status (*run_dry_function)(capu_context *context, void *argument);

struct run {
    const struct options *options;
    capu_context *context;
    uint64_t budget_bytes;    /* 0: no limit */
    uint64_t live_peak_bytes; /* what it needs without a limit */
};

/*
 * Resolves the budget and creates the context. On failure everything is said on stderr and nothing
 * is held: the exit code of main is OPTIONS_EXIT_FAILED then.
 */
bool run_open(struct run *run, const struct options *options, run_dry_function dry, void *argument);

/* Prints the report of the newest iteration if something was evicted in it. */
capu_status run_print_report(struct run *run);

/*
 * Prints the peak against the budget, waits for the files, destroys the context. `status` is what
 * became of the run; if it failed, that is said on stderr. Gives the exit code of main.
 */
int run_close(struct run *run, capu_status status);

/* "47.3 MiB", into `text`, which it returns. */
#define RUN_SIZE_TEXT 32
const char *run_size_text(uint64_t bytes, char text[RUN_SIZE_TEXT]);

#endif
