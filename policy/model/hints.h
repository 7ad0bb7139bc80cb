/*
 * Hints that a plan does not follow, and why.
 *
 * A hint says how a tensor leaves the device, if it has to: not at all, by a copy, or to be
 * recomputed. Some hints cannot be followed, whatever the plan. Others can, but the planner has
 * found a plan that is faster or needs fewer pages without. Pure.
 */
#ifndef CAPU_POLICY_HINTS_H
#define CAPU_POLICY_HINTS_H

#include <stddef.h>

#include "policy/format/plan.h"
#include "policy/model/trace_index.h"

enum hint_obstacle {
    OBSTACLE_COST,           /* none but time, pages or host memory */
    OBSTACLE_PERSISTENT,     /* to recompute: its contents outlive the iteration */
    OBSTACLE_NOT_REPLAYABLE, /* to recompute: `op` writes it and cannot be run again */
    OBSTACLE_OVERWRITTEN     /* to recompute: `op` overwrites what it is computed from */
};

struct hint_reason {
    enum hint_obstacle obstacle;
    uint32_t op;
};

/* What keeps a plan from following the tensor's hint. */
struct hint_reason hint_reason_of(const struct trace_index *trace_index, uint32_t tensor);

/* The same in words. `op`: the name of reason.op. */
void hint_reason_text(capu_hint hint, enum hint_obstacle obstacle, const char *op, char *text,
                      size_t bytes);

/* Whether the plan gives the tensor up in another way than its hint says. */
bool hint_is_ignored(const struct trace_index *trace_index, const struct plan *plan,
                     uint32_t tensor);

#endif
