/* Progress on standard output: a line that is rewritten on a terminal, plain lines elsewhere. */
#ifndef CAPU_EXAMPLES_COMMON_PROGRESS_H
#define CAPU_EXAMPLES_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *unit; /* what a step processes, in the plural: "images" */
    uint32_t steps;
    uint64_t done; /* units */
    double begin_s;
    double shown_s;
    bool is_terminal;  /* the caller may clear it */
    bool is_line_open; /* on a terminal: the line has not been ended */
    bool is_silent;    /* prints nothing: another process does. The caller's to set */
};

void progress_begin(struct progress *progress, uint32_t steps, const char *unit);

/* Call after step `step`, counted from 1, which processed `units`. */
void progress_step(struct progress *progress, uint32_t step, float loss, uint64_t units);

/* Call before other output: ends the line on a terminal. */
void progress_break(struct progress *progress);

/* Ends the line and prints the average rate. */
void progress_end(struct progress *progress);

#endif
