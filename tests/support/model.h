/*
 * A second implementation of the specification of plans, as literal as possible: plain lists with
 * linear search. Tests compare the results of policy/model/program.c, validate.c and timeline.c
 * with it. For small traces only.
 */
#ifndef CAPU_TESTS_SUPPORT_MODEL_H
#define CAPU_TESTS_SUPPORT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/format/plan.h"
#include "policy/format/trace.h"

struct model {
    bool is_valid;
    const char *why;       /* a constant: the rule that is violated; "" if none */
    uint64_t iteration_ns; /* if valid: the time of an iteration on the trace's machine */
    uint64_t most_held;    /* the most device bytes, fixed_bytes included */
    uint64_t most_on_host; /* the most host bytes */
};

/* Checks and times a plan. Pre: its tensors and ops exist, and it replays only earlier, replayable
   ops. Everything else is checked here. */
void model_run(struct model *model, const struct trace *trace, const struct plan *plan);

#endif
