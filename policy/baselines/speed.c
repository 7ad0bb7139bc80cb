/*
 * Planner speed: keeps the outputs of convolutions and matrix products, and replays everything else
 * that forward makes and backward needs, which is cheap. The same for every budget; what then does
 * not fit is paged on demand.
 */
#include "policy/search/planner_shared.h"

#include "policy/baselines/training_passes.h"

#include <stdlib.h>

capu_status speed_plan(struct planning *planning)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    const struct trace *trace = trace_index->trace;
    uint64_t mean_bytes = training_passes_mean_parameter(trace);
    uint8_t *is_kept = calloc((size_t)trace->tensor_count + 1, 1);
    capu_status status;

    if (is_kept == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t k = 0; k <= trace_index->peak_op; k++) {
        const struct trace_op *op = &trace->ops[k];

        for (uint32_t i = 0;
             training_passes_is_product(trace, k, mean_bytes) && i < op->write_count; i++) {
            is_kept[trace_writes(trace, op)[i]] = 1;
        }
    }
    status = training_passes_keep_only(planning, is_kept);
    free(is_kept);
    return status;
}
