/* Forward and backward, as far as a trace shows them; and the planners that work by layers: vdnn,
   checkpoint and speed. */
#include "policy/baselines/training_passes.h"

#include "policy/baselines/baselines.h"
#include "policy/search/planner_shared.h"
#include "policy/search/search.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

uint32_t training_passes_idle_gap(const struct trace_index *trace_index, uint32_t tensor)
{
    uint32_t end = trace_index->first[tensor + 1];

    if (trace_index->rounded[tensor] == 0 || trace_index->trace->tensors[tensor].persistent) {
        return TRACE_INDEX_NONE;
    }
    for (uint32_t gap = trace_index->first[tensor]; gap + 1 < end; gap++) {
        if (trace_index->op[gap] <= trace_index->peak_op &&
            trace_index->op[gap + 1] > trace_index->peak_op) {
            return trace_index->role[gap + 1] != USE_WRITE ? gap : TRACE_INDEX_NONE;
        }
    }
    return TRACE_INDEX_NONE;
}

/* Does the op read a parameter? */
static bool has_weights(const struct trace *trace, uint32_t op)
{
    const struct trace_op *entry = &trace->ops[op];

    for (uint32_t i = 0; i < entry->read_count; i++) {
        if (trace->tensors[trace_reads(trace, entry)[i]].kind == CAPU_PARAMETER) {
            return true;
        }
    }
    return false;
}

static bool is_named_product(const char *name)
{
    static const char *const words[] = {"conv",   "matmul", "gemm",    "linear",
                                        "einsum", "flash",  "attn.qk", "attn.pv"};
    const char *slash = strrchr(name, '/');

    name = slash != NULL ? slash + 1 : name;
    for (; *name != '\0'; name++) {
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
            if (strncasecmp(name, words[i], strlen(words[i])) == 0) {
                return true;
            }
        }
    }
    return false;
}

bool training_passes_is_product(const struct trace *trace, uint32_t op, uint64_t mean_bytes)
{
    const struct trace_op *entry = &trace->ops[op];

    for (uint32_t i = 0; i < entry->read_count; i++) {
        const struct trace_tensor *tensor = &trace->tensors[trace_reads(trace, entry)[i]];

        if (tensor->kind == CAPU_PARAMETER && tensor->bytes >= mean_bytes / 16) {
            return true;
        }
    }
    return is_named_product(trace_op_name(trace, op));
}

uint64_t training_passes_mean_parameter(const struct trace *trace)
{
    uint64_t bytes = 0;
    uint64_t count = 0;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        if (trace->tensors[t].kind == CAPU_PARAMETER) {
            bytes += trace->tensors[t].bytes;
            count++;
        }
    }
    return count > 0 ? bytes / count : 0;
}

/* Per op of forward: up to where replays of it are wanted; and per kept tensor, up to where they
   read it. Backwards over the ops, since what a replay reads was made by earlier ones. */
static void find_wanted(const struct planning *planning, const uint8_t *is_kept, uint32_t *wanted,
                        uint32_t *read_until)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    const struct trace *trace = trace_index->trace;

    for (uint32_t k = trace_index->peak_op + 1; k-- > 0;) {
        const struct trace_op *op = &trace->ops[k];

        for (uint32_t i = 0; wanted[k] > 0 && i < op->read_count; i++) {
            uint32_t r = trace_reads(trace, op)[i];
            uint32_t maker = trace_index->op[trace_index->first[r]];
            uint32_t last = trace_index->op[trace_index->first[r + 1] - 1];
            uint32_t gap = training_passes_idle_gap(trace_index, r);
            bool is_dropped = gap != TRACE_INDEX_NONE && planning->decisions[gap] == DECIDE_DROP;

            if (trace_index->rounded[r] == 0 || trace->tensors[r].persistent) {
                continue;
            }
            if (is_kept[r] && last < wanted[k] && read_until[r] < wanted[k]) {
                read_until[r] = wanted[k];
            } else if (!is_kept[r] && (is_dropped || last < wanted[k]) && maker < k &&
                       wanted[maker] < wanted[k]) {
                wanted[maker] = wanted[k];
            }
        }
    }
}

/* Lowers with one virtual read per kept tensor that dies before replays have read it. */
static capu_status lower_with_reads(struct planning *planning, const uint32_t *read_until)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    const struct trace *trace = trace_index->trace;
    struct lower_options options = planner_paging_options(planning);
    struct virtual_reads reads = {.list = malloc((trace->tensor_count + 1) * sizeof(*reads.list)),
                                  .is_unconditional = true};
    uint8_t *decisions = NULL;
    struct lower *lower = NULL;
    capu_status status = CAPU_NO_HOST_MEMORY;

    for (uint32_t t = 0; reads.list != NULL && t < trace->tensor_count; t++) {
        if (read_until[t] > 0) {
            reads.list[reads.count++] = (struct virtual_read){.tensor = t, .op = read_until[t]};
        }
    }
    if (reads.list != NULL) {
        status = lower_create(trace_index, planning->machine, &reads, &lower);
    }
    if (status == CAPU_OK) {
        decisions = calloc((size_t)lower_gap_count(lower) + 1, 1);
        status = decisions != NULL ? CAPU_OK : CAPU_NO_HOST_MEMORY;
    }
    if (status == CAPU_OK) {
        memcpy(decisions, planning->decisions, trace->operand_count);
        lower_set_frugal(lower, lower_is_frugal(planning->lower));
        lower_use_virtual_reads(lower, true);
        options.with_collective = true;
        status = lower_run(lower, decisions, &options, planning->plan);
    }
    lower_destroy(lower);
    free(decisions);
    virtual_reads_finish(&reads);
    return status;
}

/*
 * Drops everything that is idle between forward and backward and can be replayed, except what
 * is_kept (one per tensor) names; that outlives its last access if replays need it. Lowers to the
 * planning's plan; what does not fit is paged on demand. Errors: as lower_run.
 */
static capu_status plan_keeping(struct planning *planning, const uint8_t *is_kept)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    uint32_t *wanted = calloc((size_t)trace_index->trace->op_count + 1, sizeof(*wanted));
    uint32_t *read_until =
        calloc((size_t)trace_index->trace->tensor_count + 1, sizeof(*read_until));
    capu_status status = CAPU_NO_HOST_MEMORY;

    if (wanted != NULL && read_until != NULL) {
        for (uint32_t t = 0; t < trace_index->trace->tensor_count; t++) {
            uint32_t gap = training_passes_idle_gap(trace_index, t);
            uint32_t maker;

            if (gap == TRACE_INDEX_NONE || is_kept[t] || !lower_can_drop(planning->lower, gap)) {
                continue;
            }
            planning->decisions[gap] = DECIDE_DROP;
            maker = trace_index->op[trace_index->first[t]];
            if (trace_index->op[gap + 1] > wanted[maker]) {
                wanted[maker] = trace_index->op[gap + 1];
            }
        }
        find_wanted(planning, is_kept, wanted, read_until);
        status = lower_with_reads(planning, read_until);
    }
    free(wanted);
    free(read_until);
    return status;
}

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

static void decide_vdnn(struct planning *planning, bool only_products)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    const struct trace *trace = trace_index->trace;
    uint64_t mean_bytes = training_passes_mean_parameter(trace);

    memset(planning->decisions, DECIDE_KEEP, trace->operand_count);
    for (uint32_t k = 0; k <= trace_index->peak_op; k++) {
        const struct trace_op *op = &trace->ops[k];

        if (!has_weights(trace, k) ||
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
        decide_vdnn(planning, only_products == 1);
        status = search_try(&search, planning->decisions, &options, &ns);
    }
    if (status == CAPU_OK) {
        status = search_conclude(&search);
    }
    search_finish(&search);
    return status;
}

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
        status = plan_keeping(planning, is_kept);
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
    status = plan_keeping(planning, is_kept);
    free(is_kept);
    return status;
}
