/*
 * Planner checkpoint: checkpointing in segments (Chen et al., 2016). Of the n places where a single
 * tensor carries everything that forward continues with, every floor(sqrt(n))-th is kept.
 * Everything else that forward makes and backward needs is replayed, one segment at a time, which
 * keeps O(sqrt(n)) tensors for about one more forward pass. The same for every budget; what then
 * does not fit is paged on demand.
 *
 * Places are found in program order, between two ops of forward. Weights and inputs do not count as
 * carried, nor does what forward no longer uses.
 */
#include "policy/search/planner_shared.h"

#include "policy/baselines/training_passes.h"

#include <stdlib.h>

/* The only tensor that lives between an op and the next; TRACE_INDEX_NONE: several or none. */
static capu_status find_carriers(const struct trace_index *trace_index, uint32_t *carriers)
{
    const struct trace *trace = trace_index->trace;
    /* Tensors that begin and end to be carried with each op: their count, and the sum of their
       ids, which is the id where the count is 1. */
    struct change {
        int64_t count;
        int64_t ids;
    } *changes = calloc((size_t)trace_index->peak_op + 2, sizeof(*changes));
    int64_t count = 0;
    int64_t ids = 0;

    if (changes == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        uint32_t first = trace_index->first[t];
        uint32_t last = first;

        if (trace->tensors[t].persistent || trace->tensors[t].kind == CAPU_INPUT ||
            first == trace_index->first[t + 1] || trace_index->op[first] > trace_index->peak_op) {
            continue;
        }
        while (last + 1 < trace_index->first[t + 1] &&
               trace_index->op[last + 1] <= trace_index->peak_op) {
            last++;
        }
        changes[trace_index->op[first]].count++;
        changes[trace_index->op[first]].ids += t;
        changes[trace_index->op[last]].count--;
        changes[trace_index->op[last]].ids -= t;
    }
    for (uint32_t k = 0; k <= trace_index->peak_op; k++) {
        count += changes[k].count;
        ids += changes[k].ids;
        carriers[k] = count == 1 ? (uint32_t)ids : TRACE_INDEX_NONE;
    }
    free(changes);
    return CAPU_OK;
}

/* Tensors in is_kept; a carrier over several ops counts once. */
static void choose_kept(const struct trace_index *trace_index, const uint32_t *carriers,
                        uint8_t *is_kept)
{
    uint32_t places = 0;
    uint32_t stride = 1;
    uint32_t last = TRACE_INDEX_NONE;

    for (uint32_t k = 0; k <= trace_index->peak_op; k++) {
        places += carriers[k] != TRACE_INDEX_NONE && carriers[k] != last;
        last = carriers[k] != TRACE_INDEX_NONE ? carriers[k] : last;
    }
    while ((uint64_t)(stride + 1) * (stride + 1) <= places) {
        stride++;
    }
    places = 0;
    last = TRACE_INDEX_NONE;
    for (uint32_t k = 0; k <= trace_index->peak_op; k++) {
        if (carriers[k] != TRACE_INDEX_NONE && carriers[k] != last) {
            last = carriers[k];
            is_kept[last] = ++places % stride == 0;
        }
    }
}

capu_status checkpoint_plan(struct planning *planning)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    uint32_t tensors = trace_index->trace->tensor_count;
    uint32_t *carriers = calloc((size_t)trace_index->peak_op + 1, sizeof(*carriers));
    uint8_t *is_kept = calloc((size_t)tensors + 1, 1);
    capu_status status = CAPU_NO_HOST_MEMORY;

    if (carriers != NULL && is_kept != NULL) {
        status = find_carriers(trace_index, carriers);
    }
    if (status == CAPU_OK) {
        choose_kept(trace_index, carriers, is_kept);
        status = training_passes_keep_only(planning, is_kept);
    }
    free(carriers);
    free(is_kept);
    return status;
}

/*
 * Planner speed: keeps the outputs of convolutions and matrix products, and replays everything else
 * that forward makes and backward needs, which is cheap. The same for every budget; what then does
 * not fit is paged on demand.
 */

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
