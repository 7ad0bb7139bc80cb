/*
 * Planners behind one interface: a trace and a budget in, a valid plan out, or the reason why there
 * is none. A planner is one file with one entry in the table of planner.c.
 */
#ifndef CAPU_POLICY_PLANNER_H
#define CAPU_POLICY_PLANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "capuchin/status.h"
#include "policy/error_text.h"
#include "policy/lower.h"
#include "policy/plan.h"
#include "policy/uses.h"

enum planner_effort { EFFORT_QUICK, EFFORT_DEFAULT, EFFORT_BEST, EFFORT_COUNT };

struct planner_request {
    const struct uses *uses;       /* its page_bytes become the plan's */
    const struct machine *machine; /* NULL: the trace's own */
    uint64_t budget_bytes;
    uint64_t host_bytes; /* UINT64_MAX: no limit */
    enum planner_effort effort;
    /* Asked now and then; true ends a search with what it has. The only thing that may make two
       equal requests give different plans. NULL: never. */
    bool (*should_stop)(void *user);
    void *user;
};

/* What a planner works with; made by planner_run, borrowed by the planner. */
struct planning {
    const struct planner_request *request;
    const struct machine *machine;
    struct lower *lower;
    uint8_t *decisions;   /* one a gap, all DECIDE_KEEP at first */
    uint64_t limit_bytes; /* of the pool */
    struct plan *plan;    /* with its header; the planner fills in the actions */
    struct error_text *error;
};

struct planner {
    const char *name;
    const char *summary;
    /* Errors: OVER_BUDGET (none found), HOST_OVER_BUDGET, NO_HOST_MEMORY. */
    capu_status (*plan)(struct planning *planning);
};

/* The table, ended by a NULL name. The first is the default. */
extern const struct planner planners[];

/* NULL: no such planner. */
const struct planner *planner_find(const char *name);

/*
 * Plans and validates. Where everything fits the plan is empty. On failure *plan is zeroed.
 * Errors: OVER_BUDGET: no plan exists, since one op alone needs more (the text names it and the
 * floor). UNSUPPORTED: this planner found none, though one may exist. INVALID (no machine),
 * NO_HOST_MEMORY.
 */
capu_status planner_run(const struct planner *planner, const struct planner_request *request,
                        struct plan *plan, struct error_text *error);

/*
 * For planners: sets the limit for a budget, and with it fixed_bytes of the plan: where there is
 * room for all that is not managed at once, replays may prolong its life; else the lowering is
 * frugal. False: the largest op does not fit.
 */
bool planner_set_budget(struct planning *planning, uint64_t budget_bytes);

/* For planners: the options of demand paging, and of everything switched on. */
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
