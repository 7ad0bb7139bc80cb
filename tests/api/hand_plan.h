/*
 * Plans written by hand: they are compiled and kept as planning does it with its own, so that a
 * test decides when each copy begins.
 */
#ifndef CAPU_TESTS_API_HAND_PLAN_H
#define CAPU_TESTS_API_HAND_PLAN_H

#include "policy/format/plan.h"
#include "tests/support/rig.h"

/* Tensors and ops are numbered as in the trace: tensors by their first access. */
struct hand_action {
    enum action_kind kind;
    uint32_t tensor;
    uint32_t point;
    uint32_t replay; /* of a recompute: the only op that it runs again */
};

/* The newest iteration that has been recorded. */
const struct record *hand_plan_record(const capu_context *context);

/* Keeps the plan for iterations of the label "train" like the last one, instead of planning's own,
   and returns how long the model says that they take. All work has completed. `any`: a tensor of
   these iterations. Without places if the plan is not placed. Fails the test if the plan is not
   valid. */
uint64_t hand_plan_give(struct rig *rig, const void *any, const struct hand_action *actions,
                        size_t count, bool is_placed);

#endif
