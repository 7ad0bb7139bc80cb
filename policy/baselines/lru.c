/*
 * Planner lru: demand paging, as the passive mode does it. When an op does not fit, the least
 * recently used tensor that it does not need is evicted; what an op needs is fetched right before
 * it. The baseline, and what the other planners fall back on.
 */
#include "policy/search/planner_shared.h"

capu_status lru_plan(struct planning *planning)
{
    struct lower_options options = planner_paging_options(planning);

    return lower_run(planning->lower, planning->decisions, &options, planning->plan);
}
