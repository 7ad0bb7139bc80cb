/*
 * The context of a training run: its budget, whether the run can work in it, and what it used.
 *
 * A budget is checked before training begins. A dry run of one iteration on the sim device, which
 * has no memory and takes milliseconds, finds out how much memory the run needs without a limit,
 * and the least it can work with. So a budget in percent has a meaning, and an impossible one fails
 * at once instead of in the middle of the first iteration.
 */
#ifndef CAPU_EXAMPLES_COMMON_RUN_H
#define CAPU_EXAMPLES_COMMON_RUN_H

#include "capuchin/capuchin.h"

#include "examples/common/options.h"

/* Allocates what a run allocates and runs one training iteration, on a context of its own. */
typedef capu_status (*run_dry_function)(capu_context *context, void *argument);

/* The other processes of a run, of which each has a context. */
struct run_peers {
    uint32_t rank;  /* of this process */
    uint32_t count; /* of all; 0 and 1: there are no others, and the functions may be NULL */
    bool (*agree)(bool is_fine);                   /* whether all are fine; each calls it */
    capu_status (*configure)(capu_config *config); /* what a context should know of them */
};

/* Whether this process and all others of the run are fine. `peers` NULL: there are no others. */
bool run_agree(const struct run_peers *peers, bool is_fine);

struct run {
    const struct options *options;
    const struct run_peers *peers;
    capu_context *context;
    uint64_t budget_bytes;    /* 0: no limit */
    uint64_t live_peak_bytes; /* what it needs without a limit */
};

/*
 * Determines the budget and creates the context. `peers` NULL: there are no others; otherwise all
 * succeed or all fail. False: an error has been printed, by one of them, nothing is held, and the
 * exit code of main is OPTIONS_EXIT_FAILED.
 */
bool run_open(struct run *run, const struct options *options, const struct run_peers *peers,
              run_dry_function dry, void *argument);

/* Prints the report of the newest iteration if it evicted something. */
capu_status run_print_report(struct run *run);

/*
 * Prints the peak and the budget, waits until all files are written, and destroys the context.
 * `status` is the result of the run; an error is printed. Returns the exit code of main.
 */
int run_close(struct run *run, capu_status status);

/* "47.3 MiB", into `text`, which it returns. */
#define RUN_SIZE_TEXT 32
const char *run_size_text(uint64_t bytes, char text[RUN_SIZE_TEXT]);

#endif
