/*
 * What would make an iteration faster within a budget: changes to the program, the budget or the
 * machine, each measured by a plan for a changed trace. What does not help is left out.
 */
#ifndef CAPU_TOOLS_ADVICE_H
#define CAPU_TOOLS_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/format/string_buffer.h"

#include "tools/predict/predict.h"

struct advice {
    struct string_buffer text; /* what to change; fit for a terminal */
    uint64_t iteration_ns;
    uint64_t peak_bytes; /* without a plan */
    uint64_t floor_bytes;
    bool is_program; /* changes the program, not the budget, the pages or the machine */
    int64_t gain_ns; /* against the present plan; 0 if only the floor changes */
};

struct advice_list {
    struct advice *items; /* the largest gain first */
    size_t count;
    uint64_t iteration_ns; /* of the present plan */
    uint64_t ideal_ns;
    uint64_t bound_ns;
    bool is_stopped; /* by SIGINT, before all changes were tried; the present plan may be worse */
    struct string_buffer causes; /* lines: why the distance is the program's; may be empty */
};

/* Plans the trace and its variants, and shows progress. Errors: those of planner_run for the trace
   as it is; of a variant only NO_HOST_MEMORY. On failure nothing is held. */
capu_status advice_find(struct advice_list *list, const struct subject *subject, uint64_t budget,
                        enum plan_effort effort, struct error_text *error);
void advice_finish(struct advice_list *list);

#endif
