/*
 * Planners swap and recompute: the greedy of hybrid with a single means, as baselines for the gain
 * of mixing. What this means cannot relieve is paged on demand, the farthest next use evicted
 * first.
 */
#include "policy/search/planner_shared.h"

#include "policy/search/greedy.h"
#include "policy/search/search.h"

static capu_status plan_single_means(struct planning *planning, bool with_swap)
{
    struct greedy_options greedy_options = {.theta = 0.1,
                                            .safety = 1.0,
                                            .margin = 1.0,
                                            .with_swap = with_swap,
                                            .with_drop = !with_swap,
                                            .rounds_max = 48};
    struct lower_options options = planner_full_options(planning);
    struct search search;
    struct greedy *greedy = NULL;
    uint64_t ns;
    capu_status status = search_init(&search, planning);

    if (status == CAPU_OK) {
        status = greedy_create(planning, &greedy);
    }
    if (status == CAPU_OK) {
        /* To decide nothing and evict the farthest next use is a plan by copies, too. */
        status = with_swap ? search_try(&search, planning->decisions, &options, &ns) : CAPU_OK;
    }
    if (status == CAPU_OK) {
        status = greedy_run(greedy, &greedy_options, planning->decisions, &search.scratch);
    }
    if (status == CAPU_OK) {
        options.estimate_ns = greedy_estimate(greedy);
        status = search_try(&search, planning->decisions, &options, &ns);
    }
    if (status == CAPU_OK) {
        status = search_conclude(&search);
    }
    greedy_destroy(greedy);
    search_finish(&search);
    return status;
}

capu_status swap_plan(struct planning *planning)
{
    return plan_single_means(planning, true);
}

capu_status recompute_plan(struct planning *planning)
{
    return plan_single_means(planning, false);
}

/*
 * Planner lru: demand paging, as the passive mode does it. When an op does not fit, the least
 * recently used tensor that it does not need is evicted; what an op needs is fetched right before
 * it. The baseline, and what the other planners fall back on.
 */

capu_status lru_plan(struct planning *planning)
{
    struct lower_options options = planner_paging_options(planning);

    return lower_run(planning->lower, planning->decisions, &options, planning->plan);
}
