/* Planner hybrid: its budget levels, see hybrid_state.h. */
#include "policy/search/planner_shared.h"

#include "policy/bound/bound.h"
#include "policy/search/hybrid_state.h"

#include <stdlib.h>

/* From so many ops on, improving the result of a scan is too expensive: the effort that is still
   affordable gained nothing. */
#define HUGE_OPS 100000
/* The effort per level. */
static const struct effort efforts[EFFORT_BEST + 1] = {
    [EFFORT_QUICK] =
        {.levels = 10, .starts = 4, .variants = 2, .rounds_max = 40, .left = {0.2, 0.3}},
    [EFFORT_DEFAULT] = {.levels = 20,
                        .depth_every = 2,
                        .starts = 4,
                        .variants = 4,
                        .start_work = 300000,
                        .work = 2000000,
                        .rounds_max = 40,
                        .left = {0.1, 0.2, 0.25, 0.6, 0.6, 0.75}},
    [EFFORT_BEST] = {.levels = 20,
                     .depth_every = 2,
                     .starts = 4,
                     .variants = 8,
                     .start_work = 3000000,
                     .work = 120000000,
                     .rounds_max = 60,
                     .left = {0.05, 0.1, 0.15, 0.4, 0.4, 0.6}},
};

/* From MANY_OPS on. */
static const struct effort quick_large = {
    .levels = 4, .starts = 2, .variants = 2, .rounds_max = 40, .left = {0.2, 0.3}};
static const struct effort default_large = {.levels = 10,
                                            .depth_every = 1,
                                            .starts = 2,
                                            .variants = 2,
                                            .start_work = 100000,
                                            .work = 1000000,
                                            .rounds_max = 40,
                                            .left = {0.1, 0.2, 0.25, 0.6, 0.6, 0.75}};

/* From HUGE_OPS on. */
static const struct effort default_huge = {.levels = 10,
                                           .depth_every = 1,
                                           .starts = 2,
                                           .variants = 2,
                                           .rounds_max = 40,
                                           .left = {0.2, 0.3}};

/* The effort of a level that is not searched in depth. */
static const struct effort scan_only = {
    .starts = 2, .variants = 1, .rounds_max = 40, .left = {0.3, 0.4}};

/* One search of a level. */
struct level_search {
    bool is_placing;    /* in every step, not just at the end */
    uint64_t bound_ns;  /* no result can be faster */
    uint64_t floor_ns;  /* no result may be faster; the search may raise it */
    uint64_t found_ns;  /* out, if not every step is placed: the best time without place lines */
    uint64_t result_ns; /* and with them. UINT64_MAX: none */
};

/* Never 0, where the generator would stay. */
static uint64_t seed_of(uint64_t request)
{
    uint64_t seed = 0x9E3779B97F4A7C15u ^ (request * 0xD1342543DE82EF95u);

    return seed != 0 ? seed : 1;
}

static capu_status search_once(struct planning *planning, const struct effort *effort,
                               struct level_search *level_search, struct search *best)
{
    struct hybrid hybrid = {.planning = planning,
                            .effort = effort,
                            .seed = seed_of(planning->request->seed),
                            .is_placing = level_search->is_placing,
                            .bound_ns = level_search->bound_ns,
                            .floor_ns = level_search->floor_ns,
                            .found_ns = UINT64_MAX,
                            .result_ns = UINT64_MAX};
    capu_status status = CAPU_NO_HOST_MEMORY;

    hybrid.decisions = calloc((size_t)lower_gap_count(planning->lower) + 1, 1);
    if (hybrid.decisions != NULL) {
        status = greedy_create(planning, &hybrid.greedy);
    }
    if (status == CAPU_OK) {
        status = hybrid_level_plan(&hybrid, best);
    }
    level_search->floor_ns = hybrid.floor_ns;
    level_search->found_ns = hybrid.found_ns;
    level_search->result_ns = hybrid.result_ns;
    lower_use_virtual_reads(planning->lower, false);
    greedy_destroy(hybrid.greedy);
    free(hybrid.decisions);
    for (uint32_t i = 0; i < hybrid.start_count; i++) {
        search_finish(&hybrid.starts[i]);
    }
    return status;
}

/* With place lines: places the result of a whole search without them. If that costs time, also
   searches among plans that can be placed: neither is always better. */
static capu_status plan_budget(struct planning *planning, const struct effort *effort,
                               struct search *best)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    struct level_search level_search = {
        .is_placing = false,
        .bound_ns = bound_cut(trace_index, planning->machine, planning->plan->budget_bytes)};
    capu_status status = CAPU_OK;

    if (planning->placer != NULL && effort->work > 0) {
        status = search_once(planning, effort, &level_search, best);
        planner_set_budget(planning, planning->plan->budget_bytes);
        if (status != CAPU_OK || level_search.floor_ns >= best->best_ns ||
            (level_search.result_ns != UINT64_MAX &&
             level_search.result_ns <=
                 level_search.found_ns + trace_index->trace->total_ns / NEAR_IDEAL)) {
            return status;
        }
    }
    level_search.is_placing = planning->placer != NULL;
    return search_once(planning, effort, &level_search, best);
}

/* The frugal plan, which can be placed at any budget at which some plan is known to be, and what is
   better of its kind there. That is a level of its own, whatever budget was asked for. */
static capu_status offer_frugal(struct planning *planning, struct search *best)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    struct hybrid hybrid = {.planning = planning};
    capu_status status = planner_plan_frugally(planning, UINT64_MAX);
    struct plan *plan = planning->plan;

    if (status != CAPU_OK ||
        bound_cut(trace_index, planning->machine, plan->budget_bytes) >= best->best_ns) {
        return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
    }
    planning->limit_bytes = plan->budget_bytes - plan->fixed_bytes;
    hybrid.decisions = planning->decisions;
    status = hybrid_scan_frugal(&hybrid);
    if (status == CAPU_OK && hybrid.start_count > 0 && hybrid.starts[0].best_ns != UINT64_MAX) {
        status = search_offer(best, &hybrid.starts[0].best);
    }
    if (status == CAPU_OK) {
        status = search_offer(best, plan);
    }
    search_finish(&hybrid.starts[0]);
    return status;
}

/* The budget of a level; level 0 is the floor, with what no op names. */
static uint64_t level_budget(const struct trace_index *trace_index, uint32_t level, uint32_t levels)
{
    return level == 0 ? trace_index->floor_bytes + trace_index->idle_bytes
                      : trace_index->peak_bytes / levels * level +
                            trace_index->peak_bytes % levels * level / levels;
}

static const struct effort *effort_for(enum plan_effort effort, uint32_t ops)
{
    if (ops > MANY_OPS && effort != EFFORT_BEST) {
        return effort == EFFORT_QUICK ? &quick_large
               : ops > HUGE_OPS       ? &default_huge
                                      : &default_large;
    }
    return &efforts[effort != EFFORT_UNSET ? effort : EFFORT_DEFAULT];
}

capu_status hybrid_plan(struct planning *planning)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    const struct effort *effort =
        effort_for(planning->request->effort, trace_index->trace->op_count);
    uint32_t levels = effort->levels;
    uint64_t asked_bytes = planning->plan->budget_bytes;
    struct search best;
    capu_status status = search_init(&best, planning);

    for (uint32_t level = levels + 1; status == CAPU_OK && level-- > 0;) {
        uint64_t budget = level_budget(trace_index, level, levels);
        bool is_deep = effort->depth_every > 0 && level % effort->depth_every == 0;

        if (budget > planning->request->budget_bytes || !planner_set_budget(planning, budget)) {
            continue;
        }
        if (best.best_ns != UINT64_MAX &&
            (search_should_stop(&best) ||
             bound_cut(trace_index, planning->machine, budget) >= best.best_ns)) {
            break;
        }
        /* A level is searched as if its budget were all there is, so that it gives the same result
           whatever was asked for. */
        planning->plan->budget_bytes = budget;
        status = plan_budget(planning, is_deep ? effort : &scan_only, &best);
        planning->plan->budget_bytes = asked_bytes;
    }
    if (status == CAPU_OK && planning->placer != NULL) {
        status = offer_frugal(planning, &best);
    }
    if (status == CAPU_OK) {
        status = search_conclude(&best);
    }
    search_finish(&best);
    return status;
}
