/*
 * The choice of virtual reads. One dead tensor may stand for several larger ones: where elementwise
 * ops keep their results for backward, all of them can be replayed from what the first one read.
 * That tensor is a candidate if the results that are made from it directly, and idle from before
 * its death to after it, together are clearly larger. Small tensors are not worth a decision.
 */
#include "policy/virtual_reads.h"

#include "base/array.h"

#include <stdlib.h>

/* The least size, as a part of the peak. */
#define LEAST_PART 10000
/* A shorter gap of a result, in ops, is not worth replays. */
#define LEAST_GAP 40

/* Is the tensor managed, transient and written exactly once? */
static bool is_made_once(const struct trace_index *trace_index, uint32_t tensor)
{
    uint32_t writes = 0;

    if (trace_index->trace->tensors[tensor].persistent || trace_index->rounded[tensor] == 0) {
        return false;
    }
    for (uint32_t slot = trace_index->first[tensor]; slot < trace_index->first[tensor + 1];
         slot++) {
        writes += trace_index->role[slot] != USE_READ;
    }
    return writes == 1;
}

/* Is the tensor idle for long, until after the op? */
static bool is_idle_across(const struct trace_index *trace_index, uint32_t tensor, uint32_t op)
{
    for (uint32_t slot = trace_index->first[tensor] + 1; slot < trace_index->first[tensor + 1];
         slot++) {
        if (trace_index->op[slot] > op &&
            trace_index->op[slot] - trace_index->op[slot - 1] > LEAST_GAP) {
            return true;
        }
    }
    return false;
}

struct growing {
    struct virtual_reads *reads;
    size_t capacity;
};

/* One read of the tensor at every op after its death that uses the result. */
static bool add_uses(const struct trace_index *trace_index, struct growing *growing,
                     uint32_t tensor, uint32_t death, uint32_t result)
{
    struct virtual_reads *reads = growing->reads;

    for (uint32_t slot = trace_index->first[result]; slot < trace_index->first[result + 1];
         slot++) {
        if (trace_index->op[slot] <= death) {
            continue;
        }
        if (!array_reserve(&reads->list, &growing->capacity, (size_t)reads->count + 1,
                           sizeof(*reads->list))) {
            return false;
        }
        reads->list[reads->count++] =
            (struct virtual_read){.tensor = tensor, .op = trace_index->op[slot]};
    }
    return true;
}

static int compare_reads(const void *a, const void *b)
{
    const struct virtual_read *left = a;
    const struct virtual_read *right = b;

    return (left->op > right->op) - (left->op < right->op);
}

/* Of one tensor, whose reads begin at `first`: in order, each op once. */
static void arrange(struct virtual_reads *reads, uint32_t first)
{
    uint32_t kept = first;

    qsort(reads->list + first, reads->count - first, sizeof(*reads->list), compare_reads);
    for (uint32_t i = first; i < reads->count; i++) {
        if (kept == first || reads->list[i].op != reads->list[kept - 1].op) {
            reads->list[kept++] = reads->list[i];
        }
    }
    reads->count = kept;
}

/* Adds the tensor's reads, if it stands for enough. False: no memory. */
static bool consider(const struct trace_index *trace_index, struct growing *growing,
                     uint32_t tensor)
{
    const struct trace *trace = trace_index->trace;
    uint32_t first = growing->reads->count;
    uint32_t end = trace_index->first[tensor + 1];
    uint32_t death = trace_index->op[end - 1];
    uint64_t bytes = 0;

    for (uint32_t slot = trace_index->first[tensor]; slot < end; slot++) {
        const struct trace_op *op = &trace->ops[trace_index->op[slot]];
        bool is_reader = trace_index->role[slot] == USE_READ && op->replayable;

        for (uint32_t i = 0; is_reader && i < op->write_count; i++) {
            uint32_t result = trace_writes(trace, op)[i];

            if (is_made_once(trace_index, result) && is_idle_across(trace_index, result, death)) {
                bytes += trace_index->rounded[result];
                if (!add_uses(trace_index, growing, tensor, death, result)) {
                    return false;
                }
            }
        }
    }
    if (growing->reads->count > first && bytes / 3 >= trace_index->rounded[tensor] / 2) {
        arrange(growing->reads, first);
    } else {
        growing->reads->count = first;
    }
    return true;
}

capu_status virtual_reads_choose(const struct trace_index *trace_index, struct virtual_reads *reads)
{
    struct growing growing = {.reads = reads};

    *reads = (struct virtual_reads){0};
    for (uint32_t t = 0; t < trace_index->trace->tensor_count; t++) {
        if (is_made_once(trace_index, t) &&
            trace_index->rounded[t] >= trace_index->peak_bytes / LEAST_PART &&
            !consider(trace_index, &growing, t)) {
            virtual_reads_finish(reads);
            return CAPU_NO_HOST_MEMORY;
        }
    }
    return CAPU_OK;
}

void virtual_reads_finish(struct virtual_reads *reads)
{
    free(reads->list);
    *reads = (struct virtual_reads){0};
}
