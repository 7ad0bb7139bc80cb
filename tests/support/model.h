/*
 * The specification of plans once more, written down as it stands there and nothing else: lists of
 * items and of free bytes, looked through from the front. What policy/program.c, validate.c and
 * timeline.c answer is compared with it. Small traces only.
 */
#ifndef CAPU_TESTS_SUPPORT_MODEL_H
#define CAPU_TESTS_SUPPORT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/plan.h"
#include "policy/trace.h"

struct model {
    bool is_valid;
    const char *why;       /* a constant: the rule that is broken; "" if none */
    uint64_t iteration_ns; /* where it is valid; by the trace's own machine */
    uint64_t most_held;    /* bytes at most, fixed_bytes included */
    uint64_t most_on_host;
};

/* A plan whose tensors and ops exist and whose replays are of earlier ops that may be replayed;
   what else there is to a plan is checked here. */
void model_run(struct model *model, const struct trace *trace, const struct plan *plan);

#endif
