/* Forward and backward, as far as a trace shows them. */
#include "policy/baselines/training_passes.h"

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

bool training_passes_has_weights(const struct trace *trace, uint32_t op)
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

capu_status training_passes_keep_only(struct planning *planning, const uint8_t *is_kept)
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
