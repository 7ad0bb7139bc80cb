/*
 * The choice of virtual reads. One dead tensor may stand for several larger ones: where elementwise
 * ops keep their results for backward, all of them can be replayed from what the first one read.
 * That tensor is a candidate if the results that are made from it directly, and idle from before
 * its death to after it, together are clearly larger. Any tensor is, for results that are needed
 * again soon after its death: for these it need not be kept for long. Small tensors are not worth a
 * decision.
 */
#include "policy/lower/virtual_reads.h"

#include "base/array.h"

#include <stdlib.h>

/* The least size without rounding, as a part of the peak; and of all together that are read only
   soon after their death: a few are not worth a larger space. */
#define LEAST_PART 10000
#define LEAST_PART_SOON 20
/* A shorter gap of a result, in ops, is not worth replays. */
#define LEAST_GAP 40
/* At most so many ops after a tensor's death. */
#define SOON 40

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
    bool with_soon;
    uint64_t soon_bytes; /* of tensors that are read soon after their death only */
};

/* One read of the tensor at every op after its death that uses the result; or only where that ends
   a long gap soon after. */
static bool add_uses(const struct trace_index *trace_index, struct growing *growing,
                     uint32_t tensor, uint32_t death, uint32_t result, bool is_soon)
{
    struct virtual_reads *reads = growing->reads;

    for (uint32_t slot = trace_index->first[result]; slot < trace_index->first[result + 1];
         slot++) {
        uint32_t use = trace_index->op[slot];

        if (use <= death ||
            (is_soon && (use - death > SOON || use - trace_index->op[slot - 1] <= LEAST_GAP))) {
            continue;
        }
        if (!array_reserve(&reads->list, &growing->capacity, (size_t)reads->count + 1,
                           sizeof(*reads->list))) {
            return false;
        }
        reads->list[reads->count++] = (struct virtual_read){.tensor = tensor, .op = use};
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

    if (reads->count == first) {
        return;
    }
    qsort(reads->list + first, reads->count - first, sizeof(*reads->list), compare_reads);
    for (uint32_t i = first; i < reads->count; i++) {
        if (kept == first || reads->list[i].op != reads->list[kept - 1].op) {
            reads->list[kept++] = reads->list[i];
        }
    }
    reads->count = kept;
}

/* Adds the reads of the tensor for the results that are made from it; *bytes: what these have
   together. False: no memory. */
static bool add_reads(const struct trace_index *trace_index, struct growing *growing,
                      uint32_t tensor, bool is_soon, uint64_t *bytes)
{
    const struct trace *trace = trace_index->trace;
    uint32_t end = trace_index->first[tensor + 1];
    uint32_t death = trace_index->op[end - 1];

    *bytes = 0;
    for (uint32_t slot = trace_index->first[tensor]; slot < end; slot++) {
        const struct trace_op *op = &trace->ops[trace_index->op[slot]];
        bool is_reader = trace_index->role[slot] == USE_READ && op->replayable;

        for (uint32_t i = 0; is_reader && i < op->write_count; i++) {
            uint32_t result = trace_writes(trace, op)[i];

            if (is_made_once(trace_index, result) && is_idle_across(trace_index, result, death)) {
                *bytes += trace_index->rounded[result];
                if (!add_uses(trace_index, growing, tensor, death, result, is_soon)) {
                    return false;
                }
            }
        }
    }
    return true;
}

/* Adds the tensor's reads: all if it stands for enough, else those soon after its death, for which
   it need not be kept for long. False: no memory. */
static bool consider(const struct trace_index *trace_index, struct growing *growing,
                     uint32_t tensor)
{
    uint32_t first = growing->reads->count;
    uint64_t bytes;

    if (!add_reads(trace_index, growing, tensor, false, &bytes)) {
        return false;
    }
    if (bytes / 3 < trace_index->rounded[tensor] / 2) {
        growing->reads->count = first;
        if (growing->with_soon && !add_reads(trace_index, growing, tensor, true, &bytes)) {
            return false;
        }
        growing->soon_bytes += growing->reads->count > first ? trace_index->rounded[tensor] : 0;
    }
    arrange(growing->reads, first);
    return true;
}

static bool list_reads(const struct trace_index *trace_index, struct growing *growing)
{
    for (uint32_t t = 0; t < trace_index->trace->tensor_count; t++) {
        if (is_made_once(trace_index, t) &&
            trace_index->trace->tensors[t].bytes >= trace_index->peak_bytes / LEAST_PART &&
            !consider(trace_index, growing, t)) {
            return false;
        }
    }
    return true;
}

capu_status virtual_reads_choose(const struct trace_index *trace_index, struct virtual_reads *reads)
{
    struct growing growing = {.reads = reads, .with_soon = true};
    bool is_complete;

    *reads = (struct virtual_reads){0};
    is_complete = list_reads(trace_index, &growing);
    if (is_complete && growing.soon_bytes < trace_index->peak_bytes / LEAST_PART_SOON) {
        reads->count = 0;
        growing.with_soon = false;
        is_complete = list_reads(trace_index, &growing);
    }
    if (!is_complete) {
        virtual_reads_finish(reads);
    }
    return is_complete ? CAPU_OK : CAPU_NO_HOST_MEMORY;
}

void virtual_reads_finish(struct virtual_reads *reads)
{
    free(reads->list);
    *reads = (struct virtual_reads){0};
}
