/*
 * Planner vdnn: vDNN (Rhu et al., MICRO 2016). The input of a layer (an op of forward with weights)
 * is copied out after its last use in forward and fetched for backward. All layers, or only
 * convolutions and matrix products: the faster of the two, as in its dynamic variant (whose third
 * choice, slower algorithms with less workspace, is not open to a planner).
 *
 * Where we differ: no barrier ends a layer until its copy has ended; in the execution model compute
 * waits only for memory that it needs, so this is vDNN at its best. Whatever else does not fit is
 * paged on demand.
 */
#include "policy/search/planner_shared.h"

#include "policy/baselines/training_passes.h"
#include "policy/search/search.h"

#include <string.h>

static void decide(struct planning *planning, bool only_products)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    const struct trace *trace = trace_index->trace;
    uint64_t mean_bytes = training_passes_mean_parameter(trace);

    memset(planning->decisions, DECIDE_KEEP, trace->operand_count);
    for (uint32_t k = 0; k <= trace_index->peak_op; k++) {
        const struct trace_op *op = &trace->ops[k];

        if (!training_passes_has_weights(trace, k) ||
            (only_products && !training_passes_is_product(trace, k, mean_bytes))) {
            continue;
        }
        for (uint32_t i = 0; i < op->read_count; i++) {
            uint32_t gap = training_passes_idle_gap(trace_index, trace_reads(trace, op)[i]);

            if (gap != TRACE_INDEX_NONE) {
                planning->decisions[gap] = DECIDE_SWAP;
            }
        }
    }
}

capu_status vdnn_plan(struct planning *planning)
{
    struct lower_options options = planner_paging_options(planning);
    struct search search;
    uint64_t ns;
    capu_status status = search_init(&search, planning);

    options.with_prefetch = true;
    options.lead = 2.0;
    for (int only_products = 0; status == CAPU_OK && only_products < 2; only_products++) {
        decide(planning, only_products == 1);
        status = search_try(&search, planning->decisions, &options, &ns);
    }
    if (status == CAPU_OK) {
        status = search_conclude(&search);
    }
    search_finish(&search);
    return status;
}
