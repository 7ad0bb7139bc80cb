/*
 * Demand paging, as the passive mode does it: when an op does not fit, the least recently used
 * tensor that it does not need leaves; what an op needs returns right before it. The baseline of
 * all, and the safety net under the others.
 */
#include "policy/planner_shared.h"

capu_status lru_plan(struct planning *planning)
{
    struct lower_options options = planner_paging_options(planning);

    return lower_run(planning->lower, planning->decisions, NULL, &options, planning->plan);
}
