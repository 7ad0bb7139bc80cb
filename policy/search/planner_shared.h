/*
 * What planners work with and share. Included by planners and by what they are made of: the greedy
 * and the searches.
 */
#ifndef CAPU_POLICY_PLANNER_SHARED_H
#define CAPU_POLICY_PLANNER_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/format/plan.h"
#include "policy/lower/lower.h"
#include "policy/place/place.h"
#include "policy/search/planner.h"

/* What a planner works with; made by planner_run, borrowed by the planner. */
struct planning {
    const struct planner_request *request;
    const struct planner *planner;  /* the one that plans */
    const struct planner *planners; /* the table, for hybrid, which tries the others, too */
    const struct machine *machine;
    struct lower *lower;
    uint8_t *decisions;    /* one per gap, all DECIDE_KEEP at first; virtual reads are not in use */
    uint64_t limit_bytes;  /* of the pool */
    struct plan *plan;     /* with its header; the planner fills in the actions */
    struct placer *placer; /* NULL: without place lines */
    uint64_t placed_floor; /* bytes; 0: not known. The least that a placement was found for */
    uint64_t reported_ns;  /* the fastest plan that planner_report has passed on */
    bool is_quiet;         /* plans that are found may not count: none is reported */
    struct error_text *error;
};

/*
 * Sets the limit for a budget, and with it fixed_bytes of the plan. If there is room for all
 * unmanaged tensors at once, replays may extend their lives; else the lowering is frugal. False:
 * the largest op does not fit.
 */
bool planner_set_budget(struct planning *planning, uint64_t budget_bytes);

/*
 * Makes the frugal plan: every tensor is evicted after each access, which gives placement the most
 * freedom. Sets placed_floor to the bytes that this needs, and the plan's budget to it.
 *
 * A planner that makes place lines has to consider this plan wherever it fits, so that what can be
 * placed at one budget can be placed at any larger one. Pre: there is a placer. Errors: as of a
 * planner; OVER_BUDGET also if the plan cannot be faster than `below_ns`.
 */
capu_status planner_plan_frugally(struct planning *planning, uint64_t below_ns);

/* Merges the plan and places it. Errors: as of placer_run and program_init. */
capu_status planner_place(struct planning *planning, struct plan *plan, struct place_result *result,
                          struct error_text *error);

/*
 * Makes a valid plan what is returned: adds the copies that the request asks for (preserve.h).
 * Gives its program, zeroed on failure.
 * Errors: as of planner_run.
 */
capu_status planner_conclude(const struct planner_request *request, struct plan *plan,
                             struct program *program, struct error_text *error);
/*
 * Passes a copy of a plan on to whoever made the request, concluded, if it is faster than those
 * before. Pre: it has place lines if they were asked for. Errors: NO_HOST_MEMORY.
 */
capu_status planner_report(struct planning *planning, const struct plan *found, uint64_t ns);

/* The options of demand paging, and those with everything switched on. */
struct lower_options planner_paging_options(const struct planning *planning);
struct lower_options planner_full_options(const struct planning *planning);

/* Each planner's entry. */
capu_status hybrid_plan(struct planning *planning);
capu_status lru_plan(struct planning *planning);
capu_status manual_plan(struct planning *planning);
capu_status recompute_plan(struct planning *planning);
capu_status swap_plan(struct planning *planning);

#endif
