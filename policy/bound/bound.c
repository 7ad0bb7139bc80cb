/*
 * The closed form: at any op k, whatever of the contents that later ops read exceeds the budget
 * must be away, that is, on the host or to be replayed.
 *
 * Let O be the extra time of an iteration and T its ideal time. What is away by copy when k starts
 * left before; of transient tensors, whose contents this iteration made, that is at most d2h *
 * (time before k + O). What is away by copy when k ends returns after it: at most h2d * (time after
 * k + O). The rest is replayed, which costs at least the value of a fractional knapsack of
 * producers (the cheapest time per byte first). The least O that satisfies this for all k is a
 * lower bound: chains of replays, indivisible tensors and all other cuts are relaxed. Persistent
 * tensors that no later op of the iteration reads may be away at no cost: their copies may overlap
 * the neighbouring iterations.
 *
 * Hybrid uses it to skip levels, so it has to be fast: the knapsack's groups are in Fenwick trees
 * by price, and one sweep over k updates them.
 */
#include "policy/bound/bound.h"

#include <math.h>
#include <stdlib.h>

struct group {
    double ns_per_byte;
    uint32_t op;
};

struct cut {
    const struct trace_index *trace_index;
    const struct trace *trace;
    double d2h; /* bytes per ns */
    double h2d;
    double *bytes; /* Fenwick trees over groups by price, from index 1 */
    double *costs;
    uint32_t *rank; /* per op, from 1; 0: cannot be replayed */
    double *price;  /* per rank: ns per byte */
    uint32_t group_count;
    double transient; /* alive and evictable at the current op */
    double persistent;
    double slack; /* bytes that rounding to pages adds to them */
};

static int compare_groups(const void *a, const void *b)
{
    const struct group *left = a;
    const struct group *right = b;

    if (left->ns_per_byte != right->ns_per_byte) {
        return left->ns_per_byte < right->ns_per_byte ? -1 : 1;
    }
    return (left->op > right->op) - (left->op < right->op);
}

static void add_bytes(struct cut *cut, uint32_t rank, double bytes)
{
    for (uint32_t i = rank; rank > 0 && i <= cut->group_count; i += i & -i) {
        cut->bytes[i] += bytes;
        cut->costs[i] += bytes * cut->price[rank];
    }
}

/* The least replay time that makes up for `bytes`; infinite if nothing can. */
static double replay_cost(const struct cut *cut, double bytes)
{
    uint32_t at = 0;
    uint32_t step = 1;
    double cost = 0.0;

    if (bytes <= 0.0) {
        return 0.0;
    }
    while (step * 2 <= cut->group_count) {
        step *= 2;
    }
    for (; step > 0; step /= 2) {
        if (at + step <= cut->group_count && cut->bytes[at + step] < bytes) {
            at += step;
            bytes -= cut->bytes[at];
            cost += cut->costs[at];
        }
    }
    return at == cut->group_count ? INFINITY : cost + bytes * cut->price[at + 1];
}

static bool suffices(const struct cut *cut, double extra, double excess, double before,
                     double after)
{
    double left = fmin(cut->d2h * (before + extra) + cut->slack, cut->transient) + cut->persistent;
    double returning = cut->h2d * (after + extra) + cut->slack;
    double copied = fmin(left, returning);

    return replay_cost(cut, excess - copied) <= extra;
}

static double least_extra(const struct cut *cut, double low, double excess, double before,
                          double after)
{
    double high = low + 1.0;

    if (suffices(cut, low, excess, before, after)) {
        return low;
    }
    while (!suffices(cut, high, excess, before, after) && high < 1e18) {
        high *= 2.0;
    }
    for (int i = 0; i < 60; i++) {
        double middle = low + (high - low) / 2.0;

        if (suffices(cut, middle, excess, before, after)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return low;
}

/* Tensors enter and leave what is alive around op k: `sign` 1 or -1. */
static void count_gap(struct cut *cut, uint32_t tensor, uint32_t maker, double sign)
{
    double rounded = (double)cut->trace_index->rounded[tensor];

    cut->slack += sign * (rounded - (double)cut->trace->tensors[tensor].bytes);
    if (cut->trace->tensors[tensor].persistent) {
        cut->persistent += sign * rounded;
    } else {
        cut->transient += sign * rounded;
    }
    add_bytes(cut, maker != TRACE_INDEX_NONE ? cut->rank[maker] : 0, sign * rounded);
}

/* Prices: what an op costs over all that it writes, so that no part of it is priced too high. */
static bool price_groups(struct cut *cut)
{
    const struct trace *trace = cut->trace;
    struct group *groups = malloc(((size_t)trace->op_count + 1) * sizeof(*groups));

    if (groups == NULL) {
        return false;
    }
    for (uint32_t k = 0; k < trace->op_count; k++) {
        const struct trace_op *op = &trace->ops[k];
        double bytes = 0.0;

        for (uint32_t i = 0; i < op->write_count; i++) {
            bytes += (double)cut->trace_index->rounded[trace_writes(trace, op)[i]];
        }
        if (op->replayable && bytes > 0.0) {
            groups[cut->group_count++] =
                (struct group){.ns_per_byte = (double)op->ns / bytes, .op = k};
        }
    }
    qsort(groups, cut->group_count, sizeof(*groups), compare_groups);
    for (uint32_t i = 0; i < cut->group_count; i++) {
        cut->rank[groups[i].op] = i + 1;
        cut->price[i + 1] = groups[i].ns_per_byte;
    }
    free(groups);
    return true;
}

/* The time before an access: is the tensor in a gap whose contents matter? Not if the access
   overwrites them. The slot after the last access stands for the rest of the iteration. */
static bool has_gap(const struct cut *cut, uint32_t tensor, uint32_t slot)
{
    const struct trace_index *trace_index = cut->trace_index;
    bool is_persistent = cut->trace->tensors[tensor].persistent;

    return slot < trace_index->first[tensor + 1] &&
           (is_persistent || slot > trace_index->first[tensor]) &&
           trace_index->role[slot] != USE_WRITE;
}

/* Also writes to excess[k], if asked for, by how much the contents at op k exceed the limit. */
static double walk_ops(struct cut *cut, uint64_t limit, uint32_t *cursor, uint32_t *maker,
                       double *excesses)
{
    const struct trace *trace = cut->trace;
    double before = 0.0;
    double extra = 0.0;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        cursor[t] = cut->trace_index->first[t];
        maker[t] = TRACE_INDEX_NONE;
        if (has_gap(cut, t, cursor[t]) && cut->trace_index->rounded[t] > 0) {
            count_gap(cut, t, TRACE_INDEX_NONE, 1.0);
        }
    }
    for (uint32_t k = 0; k < trace->op_count; k++) {
        const struct trace_op *op = &trace->ops[k];
        double operands = 0.0;
        double excess;

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t t = trace->operands[op->first + i];
            bool is_write = i >= op->read_count && i < op->read_count + op->write_count;

            if (has_gap(cut, t, cursor[t]) && cut->trace_index->rounded[t] > 0) {
                count_gap(cut, t, maker[t], -1.0);
            }
            operands += (double)cut->trace_index->rounded[t];
            cursor[t]++;
            if (i >= op->read_count) {
                maker[t] = is_write ? k : TRACE_INDEX_NONE;
            }
        }
        excess = operands + cut->transient + cut->persistent - (double)limit;
        if (excess > 0.0) {
            extra = least_extra(cut, extra, excess, before,
                                (double)trace->total_ns - before - (double)op->ns);
        }
        if (excesses != NULL) {
            excesses[k] = excess;
        }
        before += (double)op->ns;
        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t t = trace->operands[op->first + i];

            if (has_gap(cut, t, cursor[t]) && cut->trace_index->rounded[t] > 0) {
                count_gap(cut, t, maker[t], 1.0);
            }
        }
    }
    return extra;
}

uint64_t bound_cut_excesses(const struct trace_index *trace_index, const struct machine *machine,
                            uint64_t budget_bytes, double *excesses)
{
    const struct trace *trace = trace_index->trace;
    size_t ops = (size_t)trace->op_count + 2;
    size_t tensors = (size_t)trace->tensor_count + 1;
    struct cut cut = {.trace_index = trace_index,
                      .trace = trace,
                      .d2h = (double)machine->d2h_bytes_per_s / 1e9,
                      .h2d = (double)machine->h2d_bytes_per_s / 1e9,
                      .bytes = calloc(ops, sizeof(double)),
                      .costs = calloc(ops, sizeof(double)),
                      .price = calloc(ops, sizeof(double)),
                      .rank = calloc(ops, sizeof(uint32_t))};
    uint32_t *cursor = calloc(tensors, sizeof(*cursor));
    uint32_t *maker = calloc(tensors, sizeof(*maker));
    double extra = 0.0;

    if (trace_index->peak_bytes > budget_bytes && budget_bytes >= trace_index->fixed_bytes &&
        cut.bytes != NULL && cut.costs != NULL && cut.price != NULL && cut.rank != NULL &&
        cursor != NULL && maker != NULL && price_groups(&cut)) {
        extra = walk_ops(&cut, budget_bytes - trace_index->fixed_bytes, cursor, maker, excesses);
    }
    free(cut.bytes);
    free(cut.costs);
    free(cut.price);
    free(cut.rank);
    free(cursor);
    free(maker);
    /* Sums of doubles are not exact: stay below by more than they can be off. */
    return trace->total_ns + (extra < 1e18 ? (uint64_t)(extra * (1.0 - 1e-6)) : 0);
}

uint64_t bound_cut(const struct trace_index *trace_index, const struct machine *machine,
                   uint64_t budget_bytes)
{
    return bound_cut_excesses(trace_index, machine, budget_bytes, NULL);
}
