/* Planners that are little more than options of the greedy or of the lowering: swap, recompute, lru
   and manual. */
#include "policy/search/greedy.h"
#include "policy/search/planner_shared.h"
#include "policy/search/search.h"

#include <stdlib.h>

/*
 * Planners swap and recompute: the greedy of hybrid with a single means, as baselines for the gain
 * of mixing. What this means cannot relieve is paged on demand, the farthest next use evicted
 * first.
 */

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

/*
 * Planner manual: the user's own plan. Tensors hinted swap or recompute are evicted in the longest
 * gap between their accesses, what is made inside a segment is recomputed when backward needs it,
 * and what enters a segment is kept. Nothing else is decided; what then does not fit is paged on
 * demand.
 */

/* The access before the tensor's longest gap, in ideal time. */
static uint32_t longest_gap(const struct planning *planning, uint32_t tensor,
                            const uint64_t *start_ns)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    uint32_t ops = trace_index->trace->op_count;
    uint32_t longest = TRACE_INDEX_NONE;
    uint64_t most = 0;

    for (uint32_t gap = trace_index->first[tensor]; gap < trace_index->first[tensor + 1]; gap++) {
        uint32_t end = lower_gap_end(planning->lower, gap);
        uint64_t end_ns;

        if (end == TRACE_INDEX_NONE) {
            continue;
        }
        end_ns = end >= ops ? start_ns[ops] + start_ns[end - ops] : start_ns[end];
        if (end_ns - start_ns[trace_index->op[gap]] > most) {
            most = end_ns - start_ns[trace_index->op[gap]];
            longest = gap;
        }
    }
    return longest;
}

/* Does the gap lead out of the segment in which its contents were made, to an op in no segment?
   Then that op belongs to backward. */
static bool leaves_segment(const struct planning *planning, uint32_t gap)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    const struct trace *trace = trace_index->trace;
    uint32_t tensor = lower_gap_tensor(planning->lower, gap);
    uint32_t end = lower_gap_end(planning->lower, gap);
    uint32_t segment = trace->ops[trace_index->op[gap]].segment;
    uint32_t maker = trace_index->first[tensor];

    return segment != 0 && end != TRACE_INDEX_NONE && end < trace->op_count &&
           end > trace_index->op[gap] + 1 && trace->ops[end].segment == 0 &&
           trace_index->role[maker] == USE_WRITE &&
           trace->ops[trace_index->op[maker]].segment == segment &&
           lower_can_drop(planning->lower, gap);
}

static void decide_manual(struct planning *planning, const uint64_t *start_ns)
{
    const struct trace_index *trace_index = planning->request->trace_index;

    for (uint32_t t = 0; t < trace_index->trace->tensor_count; t++) {
        capu_hint hint = (capu_hint)trace_index->trace->tensors[t].hint;
        uint32_t longest;

        if (hint == CAPU_HINT_NONE) {
            for (uint32_t gap = trace_index->first[t]; gap < trace_index->first[t + 1]; gap++) {
                planning->decisions[gap] =
                    leaves_segment(planning, gap) ? DECIDE_DROP : DECIDE_KEEP;
            }
            continue;
        }
        longest = longest_gap(planning, t, start_ns);
        if (longest != TRACE_INDEX_NONE && hint != CAPU_HINT_KEEP) {
            planning->decisions[longest] = hint == CAPU_HINT_SWAP ? DECIDE_SWAP : DECIDE_DROP;
        }
    }
}

capu_status manual_plan(struct planning *planning)
{
    const struct trace *trace = planning->request->trace_index->trace;
    struct lower_options options = planner_paging_options(planning);
    uint64_t *start_ns = calloc((size_t)trace->op_count + 1, sizeof(*start_ns));
    capu_status status;

    if (start_ns == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t k = 0; k < trace->op_count; k++) {
        start_ns[k + 1] = start_ns[k] + trace->ops[k].ns;
    }
    decide_manual(planning, start_ns);
    options.with_prefetch = true;
    options.with_collective = true;
    options.lead = 2.0;
    status = lower_run(planning->lower, planning->decisions, &options, planning->plan);
    free(start_ns);
    return status;
}
