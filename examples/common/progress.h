/* Progress on standard output: one line that is rewritten on a terminal, plain lines otherwise. */
#ifndef CAPU_EXAMPLES_COMMON_PROGRESS_H
#define CAPU_EXAMPLES_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *unit; /* what a step counts, in the plural: "images" */
    uint32_t steps;
    uint64_t done; /* units */
    double begin_s;
    double shown_s;
    bool is_terminal;
    bool is_line_open; /* on a terminal: the line has no end yet */
};

void progress_begin(struct progress *progress, uint32_t steps, const char *unit);

/* After step `step`, counted from 1, which took `units`. */
void progress_step(struct progress *progress, uint32_t step, float loss, uint64_t units);

/* Before other output: leaves the line as it stands and goes on below. */
void progress_break(struct progress *progress);

/* Ends the line and prints the rate over all. */
void progress_end(struct progress *progress);

#endif
