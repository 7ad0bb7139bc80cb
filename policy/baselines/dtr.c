/*
 * Planner dtr: Dynamic Tensor Rematerialization (Kirisame et al., ICLR 2021), an online greedy, run
 * over the trace ahead of time. When an op does not fit, the tensor with the least price per byte
 * and time since its last use is evicted; missing operands of an op are replayed. What was evicted,
 * and where, becomes the decisions.
 *
 * The price of a tensor is the time of its own op and that of its evicted ancestors and evicted
 * descendants, over paths of evicted tensors only. Where we differ: dead tensors count among the
 * ancestors (they would have to be replayed, too) but not among the descendants (nothing will read
 * them); ties go to the smaller id; only gaps that replays can bridge are candidates, and
 * persistent tensors stay. If nothing can be evicted any more, or replays have taken as long as the
 * whole iteration, DTR is at its end: nothing more is decided, and the rest is paged on demand.
 *
 * Prices are cached and marked stale when an ancestor or descendant is evicted or made again.
 */
#include "policy/baselines/baselines.h"
#include "policy/search/planner_shared.h"

#include <math.h>
#include <stdlib.h>

#define NO_MAKER UINT32_MAX

struct storage {
    uint64_t used_ns;
    uint64_t near_ns; /* the price, if it is not stale */
    uint32_t maker;   /* the op that made the contents */
    uint32_t gap;     /* the last access so far */
    uint32_t place;   /* in the pool, plus one */
    uint32_t lock_op; /* plus one: needed until lock_step of the chain for that op */
    uint32_t lock_step;
    uint32_t stamp;
    bool is_absent;
    bool is_dead;
    bool is_stale;
};

struct dtr {
    struct planning *planning;
    const struct trace_index *trace_index;
    const struct trace *trace;
    struct storage *storages; /* one per tensor */
    uint32_t *pool;           /* tensors that may leave */
    uint32_t pool_count;
    uint32_t *stack;
    uint32_t *chain; /* ops to replay before the current one, in order */
    uint32_t chain_count;
    uint32_t *op_stamp;
    uint32_t stamp;
    uint32_t now; /* the current op */
    uint64_t clock_ns;
    uint64_t replay_ns;
    uint64_t held_bytes;
    bool is_at_end;
};

/* Whether the heuristic handles the tensor: made in the iteration, with bytes in the pool. */
static bool is_ours(const struct dtr *dtr, uint32_t tensor)
{
    return dtr->trace_index->rounded[tensor] > 0 && !dtr->trace->tensors[tensor].persistent;
}

static const struct trace_op *maker_of(const struct dtr *dtr, uint32_t tensor)
{
    uint32_t maker = dtr->storages[tensor].maker;

    return maker != NO_MAKER ? &dtr->trace->ops[maker] : NULL;
}

static void pool_set(struct dtr *dtr, uint32_t tensor, bool is_in)
{
    struct storage *storage = &dtr->storages[tensor];

    if (is_in && storage->place == 0) {
        dtr->pool[dtr->pool_count++] = tensor;
        storage->place = dtr->pool_count;
        storage->is_stale = true;
    } else if (!is_in && storage->place != 0) {
        uint32_t moving = dtr->pool[--dtr->pool_count];

        dtr->pool[storage->place - 1] = moving;
        dtr->storages[moving].place = storage->place;
        storage->place = 0;
    }
}

/* Follows missing tensors from one to those it is made from. Adds up the times of their ops; if
   `marks`, prices of the present ones found become stale. */
static uint64_t ancestors(struct dtr *dtr, uint32_t tensor, bool marks)
{
    uint64_t sum = 0;
    uint32_t depth = 1;

    dtr->stack[0] = tensor;
    dtr->storages[tensor].stamp = dtr->stamp;
    while (depth > 0) {
        const struct trace_op *op = maker_of(dtr, dtr->stack[--depth]);

        for (uint32_t i = 0; op != NULL && i < op->read_count; i++) {
            uint32_t r = trace_reads(dtr->trace, op)[i];
            struct storage *storage = &dtr->storages[r];

            if (!is_ours(dtr, r) || storage->stamp == dtr->stamp) {
                continue;
            }
            storage->stamp = dtr->stamp;
            if (!storage->is_absent) {
                storage->is_stale |= marks;
                continue;
            }
            dtr->stack[depth++] = r;
            if (storage->maker != NO_MAKER && dtr->op_stamp[storage->maker] != dtr->stamp) {
                dtr->op_stamp[storage->maker] = dtr->stamp;
                sum += dtr->trace->ops[storage->maker].ns;
            }
        }
    }
    return sum;
}

/* The same in the other direction, to what was made of it. Goes through dead tensors only to mark:
   a present tensor beyond them has this one among its ancestors. */
static uint64_t descendants(struct dtr *dtr, uint32_t tensor, bool marks)
{
    const struct trace_index *trace_index = dtr->trace_index;
    uint64_t sum = 0;
    uint32_t depth = 1;

    dtr->stack[0] = tensor;
    dtr->storages[tensor].stamp = dtr->stamp;
    while (depth > 0) {
        uint32_t from = dtr->stack[--depth];

        for (uint32_t slot = trace_index->first[from];
             slot < trace_index->first[from + 1] && trace_index->op[slot] < dtr->now; slot++) {
            const struct trace_op *op = &dtr->trace->ops[trace_index->op[slot]];
            const uint32_t *writes = trace_writes(dtr->trace, op);

            for (uint32_t i = 0; trace_index->role[slot] == USE_READ && i < op->write_count; i++) {
                struct storage *storage = &dtr->storages[writes[i]];

                if (!is_ours(dtr, writes[i]) || storage->stamp == dtr->stamp ||
                    storage->maker != trace_index->op[slot]) {
                    continue;
                }
                storage->stamp = dtr->stamp;
                if (!storage->is_absent) {
                    storage->is_stale |= marks;
                } else if (marks || !storage->is_dead) {
                    dtr->stack[depth++] = writes[i];
                    if (dtr->op_stamp[storage->maker] != dtr->stamp) {
                        dtr->op_stamp[storage->maker] = dtr->stamp;
                        sum += op->ns;
                    }
                }
            }
        }
    }
    return sum;
}

static uint64_t price(struct dtr *dtr, uint32_t tensor)
{
    struct storage *storage = &dtr->storages[tensor];

    if (storage->is_stale) {
        const struct trace_op *op = maker_of(dtr, tensor);

        storage->is_stale = false;
        dtr->stamp++;
        storage->near_ns = (op != NULL ? op->ns : 0) + ancestors(dtr, tensor, false);
        storage->near_ns += descendants(dtr, tensor, false);
    }
    return storage->near_ns;
}

static void set_absent(struct dtr *dtr, uint32_t tensor, bool is_absent)
{
    struct storage *storage = &dtr->storages[tensor];

    if (storage->is_absent == is_absent) {
        return;
    }
    storage->is_absent = is_absent;
    if (is_absent) {
        dtr->held_bytes -= dtr->trace_index->rounded[tensor];
        pool_set(dtr, tensor, false);
    } else {
        dtr->held_bytes += dtr->trace_index->rounded[tensor];
    }
    if (storage->maker != NO_MAKER) {
        dtr->stamp++;
        ancestors(dtr, tensor, true);
        descendants(dtr, tensor, true);
    }
}

static void make_room(struct dtr *dtr, uint64_t bytes, uint32_t step)
{
    while (!dtr->is_at_end && dtr->held_bytes + bytes > dtr->planning->limit_bytes) {
        uint32_t victim = TRACE_INDEX_NONE;
        double least = INFINITY;

        for (uint32_t i = 0; i < dtr->pool_count; i++) {
            uint32_t t = dtr->pool[i];
            const struct storage *storage = &dtr->storages[t];
            uint64_t unused_ns = dtr->clock_ns - storage->used_ns;
            double score = INFINITY;

            if (storage->lock_op == dtr->now + 1 && storage->lock_step >= step) {
                continue;
            }
            if (unused_ns > 0) {
                score = (double)price(dtr, t) / (double)dtr->trace_index->rounded[t] /
                        (double)unused_ns;
            }
            if (victim == TRACE_INDEX_NONE || score < least || (score == least && t < victim)) {
                victim = t;
                least = score;
            }
        }
        if (victim == TRACE_INDEX_NONE) {
            dtr->is_at_end = true;
            return;
        }
        dtr->planning->decisions[dtr->storages[victim].gap] = DECIDE_DROP;
        set_absent(dtr, victim, true);
    }
}

static int compare_ops(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

/* Adds the makers of the op's missing operands to the chain, and to the stack, to be followed. */
static uint32_t add_missing(struct dtr *dtr, const struct trace_op *op, uint32_t depth)
{
    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        uint32_t t = dtr->trace->operands[op->first + i];
        uint32_t maker = dtr->storages[t].maker;
        bool is_write = i >= op->read_count && i < op->read_count + op->write_count;

        if (!is_write && is_ours(dtr, t) && dtr->storages[t].is_absent) {
            if (maker == NO_MAKER) {
                dtr->is_at_end = true;
            } else if (dtr->op_stamp[maker] != dtr->stamp) {
                dtr->op_stamp[maker] = dtr->stamp;
                dtr->chain[dtr->chain_count++] = maker;
                dtr->stack[depth++] = maker;
            }
        }
    }
    return depth;
}

static void lock_operands(struct dtr *dtr, const struct trace_op *op, uint32_t step)
{
    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        struct storage *storage = &dtr->storages[dtr->trace->operands[op->first + i]];

        storage->lock_op = dtr->now + 1;
        storage->lock_step = step;
    }
}

/* What has to be replayed before the current op, and until when all of it is needed. */
static void build_chain(struct dtr *dtr)
{
    const struct trace_op *op = &dtr->trace->ops[dtr->now];
    uint32_t depth;

    dtr->stamp++;
    dtr->chain_count = 0;
    depth = add_missing(dtr, op, 0);
    while (depth > 0) {
        depth = add_missing(dtr, &dtr->trace->ops[dtr->stack[depth - 1]], depth - 1);
    }
    qsort(dtr->chain, dtr->chain_count, sizeof(*dtr->chain), compare_ops);
    for (uint32_t i = 0; i < dtr->chain_count; i++) {
        lock_operands(dtr, &dtr->trace->ops[dtr->chain[i]], i);
    }
    lock_operands(dtr, op, dtr->chain_count);
}

static void run_op(struct dtr *dtr, const struct trace_op *op, uint32_t step)
{
    const uint32_t *operands = dtr->trace->operands + op->first;
    uint32_t count = trace_operand_count(op);
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < count; i++) {
        dtr->storages[operands[i]].used_ns = dtr->clock_ns;
        bytes += dtr->storages[operands[i]].is_absent ? dtr->trace_index->rounded[operands[i]] : 0;
    }
    make_room(dtr, bytes, step);
    for (uint32_t i = 0; i < count; i++) {
        if (dtr->storages[operands[i]].is_absent) {
            set_absent(dtr, operands[i], false);
        }
    }
    dtr->clock_ns += op->ns;
    for (uint32_t i = op->read_count; i < count; i++) {
        dtr->storages[operands[i]].used_ns = dtr->clock_ns;
    }
}

/* After a replay: dead tensors are released when the chain no longer needs them, the rest may be
   evicted again. */
static void settle_replay(struct dtr *dtr, const struct trace_op *op, uint32_t step)
{
    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        uint32_t t = dtr->trace->operands[op->first + i];
        const struct storage *storage = &dtr->storages[t];

        if (!is_ours(dtr, t)) {
            continue;
        }
        if (storage->is_dead && storage->lock_step == step) {
            set_absent(dtr, t, true);
        } else if (!storage->is_dead) {
            pool_set(dtr, t, lower_can_drop(dtr->planning->lower, storage->gap));
        }
    }
}

/* The current op has run: each of its operands moves on by one access. */
static void settle_op(struct dtr *dtr, const struct trace_op *op)
{
    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        uint32_t t = dtr->trace->operands[op->first + i];
        struct storage *storage = &dtr->storages[t];

        storage->gap =
            storage->gap == TRACE_INDEX_NONE ? dtr->trace_index->first[t] : storage->gap + 1;
        if (i >= op->read_count) {
            storage->maker = i < op->read_count + op->write_count ? dtr->now : NO_MAKER;
            storage->is_stale = true;
        }
        if (!is_ours(dtr, t)) {
            continue;
        }
        storage->is_dead = storage->gap + 1 == dtr->trace_index->first[t + 1];
        if (storage->is_dead) {
            set_absent(dtr, t, true);
        } else {
            pool_set(dtr, t, lower_can_drop(dtr->planning->lower, storage->gap));
        }
    }
}

static void decide_dtr(struct dtr *dtr)
{
    for (uint32_t t = 0; t < dtr->trace->tensor_count; t++) {
        bool is_ours_here = is_ours(dtr, t);

        dtr->storages[t].maker = NO_MAKER;
        dtr->storages[t].gap = TRACE_INDEX_NONE;
        dtr->storages[t].is_absent = is_ours_here;
        dtr->held_bytes += is_ours_here ? 0 : dtr->trace_index->rounded[t];
    }
    for (uint32_t k = 0; k < dtr->trace->op_count && !dtr->is_at_end; k++) {
        dtr->now = k;
        build_chain(dtr);
        for (uint32_t i = 0; i < dtr->chain_count && !dtr->is_at_end; i++) {
            const struct trace_op *replay = &dtr->trace->ops[dtr->chain[i]];

            run_op(dtr, replay, i);
            settle_replay(dtr, replay, i);
            dtr->replay_ns += replay->ns;
        }
        run_op(dtr, &dtr->trace->ops[k], dtr->chain_count);
        settle_op(dtr, &dtr->trace->ops[k]);
        dtr->is_at_end |= dtr->replay_ns > dtr->trace->total_ns;
    }
}

capu_status dtr_plan(struct planning *planning)
{
    const struct trace *trace = planning->request->trace_index->trace;
    struct lower_options options = planner_paging_options(planning);
    size_t tensors = (size_t)trace->tensor_count + 1;
    size_t ops = (size_t)trace->op_count + 1;
    struct dtr dtr = {
        .planning = planning, .trace_index = planning->request->trace_index, .trace = trace};
    capu_status status = CAPU_NO_HOST_MEMORY;

    dtr.storages = calloc(tensors, sizeof(*dtr.storages));
    dtr.pool = calloc(tensors, sizeof(*dtr.pool));
    dtr.stack = calloc(tensors > ops ? tensors : ops, sizeof(*dtr.stack));
    dtr.chain = calloc(ops, sizeof(*dtr.chain));
    dtr.op_stamp = calloc(ops, sizeof(*dtr.op_stamp));
    if (dtr.storages != NULL && dtr.pool != NULL && dtr.stack != NULL && dtr.chain != NULL &&
        dtr.op_stamp != NULL) {
        decide_dtr(&dtr);
        options.with_collective = true;
        status = lower_run(planning->lower, planning->decisions, &options, planning->plan);
    }
    free(dtr.storages);
    free(dtr.pool);
    free(dtr.stack);
    free(dtr.chain);
    free(dtr.op_stamp);
    return status;
}
