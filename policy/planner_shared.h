/*
 * What planners work with and share. For planners, and for what they are made of: greedy, searches.
 */
#ifndef CAPU_POLICY_PLANNER_SHARED_H
#define CAPU_POLICY_PLANNER_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "capuchin/status.h"
#include "policy/error_text.h"
#include "policy/lower.h"
#include "policy/place.h"
#include "policy/plan.h"
#include "policy/planner.h"

/* What a planner works with; made by planner_run, borrowed by the planner. */
struct planning {
    const struct planner_request *request;
    const struct planner *planner;  /* the one that plans */
    const struct planner *planners; /* the table, for planners that try the others, too */
    const struct machine *machine;
    struct lower *lower;
    uint8_t *decisions;    /* one per gap, all DECIDE_KEEP at first */
    uint64_t limit_bytes;  /* of the pool */
    struct plan *plan;     /* with its header; the planner fills in the actions */
    struct placer *placer; /* NULL: without place lines */
    uint64_t placed_floor; /* bytes; 0: not known. The least that a placement was found for */
    struct error_text *error;
};

/*
 * Sets the limit for a budget, and with it fixed_bytes of the plan: where there is room for all
 * that is not managed at once, replays may prolong its life; else the lowering is frugal. False:
 * the largest op does not fit.
 */
bool planner_set_budget(struct planning *planning, uint64_t budget_bytes);

/*
 * Pre: there is a placer. Every tensor leaves after each access, which leaves the placement the
 * most freedom. Sets placed_floor to what that takes, and the plan's budget to it. Any planner that
 * places has to count this plan too wherever it fits, so that what can be placed at a budget can be
 * at any larger one. OVER_BUDGET also where the plan cannot be faster than `below_ns`. Errors: as
 * of a planner.
 */
capu_status planner_plan_frugally(struct planning *planning, uint64_t below_ns);

/* The options of demand paging, and of everything switched on. */
struct lower_options planner_paging_options(const struct planning *planning);
struct lower_options planner_full_options(const struct planning *planning);

/* Each planner's entry. */
capu_status capuchin_plan(struct planning *planning);
capu_status checkpoint_plan(struct planning *planning);
capu_status dtr_plan(struct planning *planning);
capu_status hybrid_plan(struct planning *planning);
capu_status lru_plan(struct planning *planning);
capu_status manual_plan(struct planning *planning);
capu_status recompute_plan(struct planning *planning);
capu_status speed_plan(struct planning *planning);
capu_status swap_plan(struct planning *planning);
capu_status vdnn_plan(struct planning *planning);

#endif
