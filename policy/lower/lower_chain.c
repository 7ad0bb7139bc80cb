/*
 * Replay chains: which ops have to run again so that an op finds its dropped operands, in which
 * order, and which results are worth keeping.
 *
 * The producers are found by a depth-first search from the missing operands, through inputs that
 * are neither resident nor on the host; program order is then a valid order for the replays.
 * Between replays everything is released after its last use in the chain, unless it is kept:
 * results that a later op needs are kept, nearest use first, where they fit over the whole interval
 * until that use (the paper's collective recomputation).
 *
 * A chain that does not fit beside what is held is given up: the drops that made it necessary are
 * forbidden and the walk starts again.
 */
#include "base/assert.h"
#include "policy/lower/lower_state.h"

#include <stdlib.h>

/*
 * What bridging a gap by replays needs and costs.
 *
 * The producers of what the gap holds are followed depth first, with an explicit stack, as seen
 * from the gap's end: an input that is present there ends the search, any other has to be made
 * again first. With decisions, an input is missing if they drop it; without, only if it is dead.
 * Ops that the last lowering replays anyway cost nothing more. Bounded by CHAIN_MAX ops.
 */

/* The last slot of the tensor before the op; virtual ones only if asked for. TRACE_INDEX_NONE:
   none. */
static uint32_t gap_at(const struct lower *lower, uint32_t tensor, uint32_t op, bool has_virtual)
{
    const struct trace_index *trace_index = lower->trace_index;
    uint32_t low = trace_index->first[tensor];
    uint32_t high = trace_index->first[tensor + 1];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (trace_index->op[middle] < op) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == trace_index->first[tensor]) {
        return TRACE_INDEX_NONE;
    }
    for (uint32_t slot = low - 1;
         has_virtual && slot != TRACE_INDEX_NONE && lower->gap_start[slot] < op;
         slot = lower_slot_after(lower, tensor, slot)) {
        low = slot + 1;
    }
    return low - 1;
}

/* Is another gap of the same contents dropped? Then a replay that the last lowering counted may
   serve only that gap. */
static bool is_dropped_elsewhere(const struct lower *lower, const uint8_t *decisions, uint32_t gap)
{
    uint32_t tensor = lower->gap_tensor[gap];

    for (uint32_t slot = lower->tensors[tensor].first; slot != TRACE_INDEX_NONE;
         slot = lower_slot_after(lower, tensor, slot)) {
        if (slot != gap && lower->gap_maker[slot] == lower->gap_maker[gap] &&
            decisions[slot] == DECIDE_DROP) {
            return true;
        }
    }
    return false;
}

/* How producers are followed. */
struct following {
    const uint8_t *decisions; /* NULL: only dead contents are missing */
    bool is_wary;             /* see lower_drop_cost */
    bool is_taken;            /* the gap is dropped from now on */
    uint64_t cost;            /* out: ns */
};

/* One input of a replay. TRACE_INDEX_NONE: it is present; else the gap whose contents have to be
   made again first. */
static uint32_t follow_input(struct lower *lower, struct following *following, uint32_t there,
                             uint32_t at)
{
    const uint8_t *decisions = following->decisions;
    uint32_t end = lower->gap_end[there];

    if (end == TRACE_INDEX_NONE || end < at ||
        (decisions != NULL ? decisions[there] == DECIDE_DROP
                           : lower_ends_virtually(lower, there))) {
        return there;
    }
    if (end > at && decisions != NULL && decisions[there] == DECIDE_SWAP) {
        following->cost += following->is_wary ? lower->clock.in_ns[lower->gap_tensor[there]] : 0;
    } else if (end > at && following->is_taken) {
        lower->chain.reads[there]++;
    }
    return TRACE_INDEX_NONE;
}

/*
 * Follows the producers of what a gap holds, as seen from the gap's end. Is everything present, or
 * can it be made again? Adds up the cost.
 */
static bool follow_gap(struct lower *lower, uint32_t gap, struct following *following)
{
    const struct trace *trace = lower->trace;
    const uint8_t *decisions = following->decisions;
    bool is_again = following->is_wary && is_dropped_elsewhere(lower, decisions, gap);
    uint32_t at = lower->gap_end[gap];
    uint32_t stamp = lower_next_stamp(lower);
    uint32_t depth = 1;
    uint32_t visited = 0;

    lower->search.stack[0] = gap;
    while (depth > 0) {
        uint32_t maker = lower->gap_maker[lower->search.stack[--depth]];
        const struct trace_op *op;

        if (maker == NO_OP || !trace->ops[maker].replayable || lower->until[maker] < at) {
            return false;
        }
        if (lower->search.op_stamp[maker] == stamp) {
            continue;
        }
        if (++visited > CHAIN_MAX) {
            return false;
        }
        lower->search.op_stamp[maker] = stamp;
        op = &trace->ops[maker];
        if (decisions == NULL || lower->result.replays[maker] == 0 || (visited == 1 && is_again)) {
            following->cost += op->ns;
        }
        for (uint32_t i = 0; i < op->read_count; i++) {
            uint32_t r = trace->operands[op->first + i];
            uint32_t there;

            if (trace->tensors[r].persistent || !trace->tensors[r].managed ||
                lower->search.tensor_stamp[r] == stamp) {
                continue;
            }
            lower->search.tensor_stamp[r] = stamp;
            there = gap_at(lower, r, at, decisions != NULL);
            if (there == TRACE_INDEX_NONE) {
                return false;
            }
            there = follow_input(lower, following, there, at);
            if (there != TRACE_INDEX_NONE) {
                lower->search.stack[depth++] = there;
            }
        }
    }
    return true;
}

bool lower_can_drop(struct lower *lower, uint32_t gap)
{
    uint32_t end;
    uint32_t tensor;

    ASSERT(gap < lower->slot_count);
    end = lower->gap_end[gap];
    if (lower_ends_virtually(lower, gap)) {
        return true;
    }
    tensor = lower->gap_tensor[gap];
    if (lower->droppable[gap] == 0) {
        struct following following = {.decisions = NULL};
        bool can = end != TRACE_INDEX_NONE && end < lower->trace->op_count &&
                   !lower->trace->tensors[tensor].persistent &&
                   lower->trace->tensors[tensor].managed && follow_gap(lower, gap, &following);

        lower->droppable[gap] = can ? 1 : 2;
    }
    return lower->droppable[gap] == 1;
}

uint64_t lower_drop_cost(struct lower *lower, const uint8_t *decisions, uint32_t gap, bool is_wary)
{
    struct following following = {.decisions = decisions, .is_wary = is_wary};

    return lower_can_drop(lower, gap) && follow_gap(lower, gap, &following) ? following.cost
                                                                            : UINT64_MAX;
}

void lower_note_drop(struct lower *lower, const uint8_t *decisions, uint32_t gap)
{
    struct following following = {.decisions = decisions, .is_taken = true};

    ASSERT(gap < lower->slot_count);
    follow_gap(lower, gap, &following);
}

uint32_t lower_chain_reads(const struct lower *lower, uint32_t gap)
{
    ASSERT(gap < lower->slot_count);
    return lower->chain.reads[gap];
}

uint64_t lower_replay_ns(const struct lower *lower, uint32_t gap)
{
    uint32_t maker;

    ASSERT(gap < lower->slot_count);
    maker = lower->gap_maker[gap];
    return maker != NO_OP ? lower->trace->ops[maker].ns : 0;
}

enum { CHAIN_MADE = 1, CHAIN_FETCHED = 2, CHAIN_STAYS = 4, CHAIN_KEPT = 8 };

static int compare_ops(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

/* The tensor's current gap is not to be dropped from now on. False: that changes nothing. */
static bool forbid_drop(struct lower *lower, uint32_t tensor)
{
    uint32_t gap = lower->tensors[tensor].gap;

    if (gap == TRACE_INDEX_NONE || lower->decisions[gap] != DECIDE_DROP || lower->no_drop[gap] ||
        lower_ends_virtually(lower, gap)) {
        return false;
    }
    lower->no_drop[gap] = 1;
    return true;
}

void lower_chain_give_up(struct lower *lower, uint32_t op)
{
    const struct trace_op *entry = &lower->trace->ops[op];
    bool has_changed = false;

    for (uint32_t i = 0; i < trace_operand_count(entry); i++) {
        has_changed |= forbid_drop(lower, lower->trace->operands[entry->first + i]);
    }
    for (uint32_t i = 0; i < lower->chain.tensor_count; i++) {
        has_changed |= forbid_drop(lower, lower->chain.tensors[i]);
    }
    lower->has_given_up = true;
    lower->must_restart = true;
    if (!has_changed) {
        lower_fail(lower, CAPU_OVER_BUDGET);
    }
}

static void note_state(struct lower *lower, uint32_t tensor, uint8_t state)
{
    if (lower->chain.state[tensor] == 0) {
        lower->chain.tensors[lower->chain.tensor_count++] = tensor;
    }
    lower->chain.state[tensor] |= state;
}

/* The op that made a tensor's current contents, if it may be replayed before `op`. */
static uint32_t producer(const struct lower *lower, uint32_t tensor, uint32_t op)
{
    uint32_t gap = lower->tensors[tensor].gap;
    uint32_t maker = gap == TRACE_INDEX_NONE ? NO_OP : lower->gap_maker[gap];

    return maker != NO_OP && lower->trace->ops[maker].replayable && lower->until[maker] >= op
               ? maker
               : NO_OP;
}

/* Adds one op; inputs that are neither resident nor on the host go on the stack. */
static uint32_t add_op(struct lower *lower, uint32_t maker, uint32_t op, uint32_t depth)
{
    const struct trace_op *entry = &lower->trace->ops[maker];

    lower->chain.ops[lower->chain.count++] = maker;
    for (uint32_t i = 0; i < entry->read_count + entry->write_count; i++) {
        uint32_t t = lower->trace->operands[entry->first + i];

        if (lower->tensors[t].rounded == 0) {
            continue;
        }
        if (lower->tensors[t].is_resident) {
            lower->tensors[t].guard = op + 1;
            if (i < entry->read_count && lower->search.tensor_stamp[t] != lower->search.stamp &&
                lower->tensors[t].gap != TRACE_INDEX_NONE && lower_next_use(lower, t) > op) {
                lower->search.tensor_stamp[t] = lower->search.stamp;
                lower->chain.reads[lower->tensors[t].gap]++;
            }
        } else if (i >= entry->read_count) {
            note_state(lower, t, CHAIN_MADE);
        } else if (lower->tensors[t].has_host) {
            if ((lower->chain.state[t] & CHAIN_FETCHED) == 0 &&
                lower->search.tensor_stamp[t] != lower->search.stamp) {
                lower->chain.fetch[lower->chain.fetch_count++] = t;
                note_state(lower, t, CHAIN_FETCHED);
            }
        } else {
            lower->search.stack[depth++] = t;
        }
    }
    return depth;
}

bool lower_chain_build(struct lower *lower, uint32_t op)
{
    const struct trace_op *entry = &lower->trace->ops[op];
    uint32_t stamp = lower_next_stamp(lower);
    uint32_t depth = 0;

    lower->chain.count = 0;
    lower->chain.fetch_count = 0;
    while (lower->chain.tensor_count > 0) {
        lower->chain.state[lower->chain.tensors[--lower->chain.tensor_count]] = 0;
    }
    for (uint32_t i = 0; i < trace_operand_count(entry); i++) {
        uint32_t t = lower->trace->operands[entry->first + i];
        bool is_write = i >= entry->read_count && i < entry->read_count + entry->write_count;

        if (lower->tensors[t].rounded == 0 || lower->tensors[t].is_resident) {
            continue;
        }
        if (!lower->tensors[t].has_host) {
            lower->search.stack[depth] = t;
            depth += !is_write;
        } else if (!is_write || lower->tensors[t].gap == TRACE_INDEX_NONE) {
            /* The walk fetches it for the op itself. */
            lower->search.tensor_stamp[t] = stamp;
        }
    }
    while (depth > 0) {
        uint32_t t = lower->search.stack[--depth];
        uint32_t maker = producer(lower, t, op);

        if (maker == NO_OP || lower->chain.count >= 2 * CHAIN_MAX) {
            lower_chain_give_up(lower, op);
            return false;
        }
        if (lower->search.op_stamp[maker] != stamp) {
            lower->search.op_stamp[maker] = stamp;
            depth = add_op(lower, maker, op, depth);
        }
    }
    qsort(lower->chain.ops, lower->chain.count, sizeof(*lower->chain.ops), compare_ops);
    return true;
}

/* Finds the last use of each tensor within the chain. */
static void find_last_uses(struct lower *lower, uint32_t op)
{
    const struct trace_op *entry = &lower->trace->ops[op];

    for (uint32_t i = 0; i < lower->chain.count; i++) {
        const struct trace_op *replay = &lower->trace->ops[lower->chain.ops[i]];

        for (uint32_t j = 0; j < trace_operand_count(replay); j++) {
            lower->chain.last[lower->trace->operands[replay->first + j]] = i;
        }
    }
    for (uint32_t i = 0; i < trace_operand_count(entry); i++) {
        uint32_t t = lower->trace->operands[entry->first + i];

        if (lower->chain.state[t] != 0) {
            lower->chain.state[t] |= CHAIN_STAYS;
        }
    }
}

/* Bytes on top of what is held before the chain: after each replay, at most, and at the end. */
static void run_dry(const struct lower *lower, uint64_t *peak, uint64_t *after)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < lower->chain.fetch_count; i++) {
        bytes += lower->tensors[lower->chain.fetch[i]].rounded;
    }
    *peak = bytes;
    for (uint32_t i = 0; i < lower->chain.count; i++) {
        const struct trace_op *replay = &lower->trace->ops[lower->chain.ops[i]];
        const uint32_t *operands = lower->trace->operands + replay->first;

        for (uint32_t j = replay->read_count; j < trace_operand_count(replay); j++) {
            bytes += (lower->chain.state[operands[j]] & CHAIN_MADE) != 0
                         ? lower->tensors[operands[j]].rounded
                         : 0;
        }
        lower->chain.bytes[i] = bytes;
        *peak = bytes > *peak ? bytes : *peak;
        for (uint32_t j = 0; j < trace_operand_count(replay); j++) {
            uint8_t state = lower->chain.state[operands[j]];

            if (state != 0 && state < CHAIN_STAYS && lower->chain.last[operands[j]] == i) {
                bytes -= lower->tensors[operands[j]].rounded;
            }
        }
    }
    *after = bytes;
}

/* The op up to which a result of the chain is wanted; NO_OP: it is not. Up to `op` itself, where
   its next slot is a virtual read there and it does not die of it: what then becomes of it follows
   from the gap after that. */
static uint32_t wanted_until(const struct lower *lower, uint32_t tensor, uint32_t op)
{
    uint32_t gap = lower->tensors[tensor].gap;
    uint32_t use = lower_next_use(lower, tensor);
    uint32_t next = gap == TRACE_INDEX_NONE ? gap : lower_slot_after(lower, tensor, gap);

    if (next != TRACE_INDEX_NONE && lower_is_virtual(lower, next) && lower->gap_start[next] == op) {
        return lower_ends_virtually(lower, next) && lower->means[next] != DECIDE_DROP ? op : NO_OP;
    }
    return use < lower->trace->op_count && lower_next_needs(lower, tensor) ? use : NO_OP;
}

/* Puts the results that a later op needs into the stash, nearest use first. Returns their number.
 */
static uint32_t list_wanted(struct lower *lower, uint32_t op)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < lower->chain.tensor_count; i++) {
        uint32_t t = lower->chain.tensors[i];

        uint32_t use = wanted_until(lower, t, op);

        if (lower->chain.state[t] < CHAIN_STAYS && use != NO_OP) {
            lower->victims.stash[count++] = (struct victim){.key = use, .tensor = t};
        }
    }
    for (uint32_t i = 1; i < count; i++) {
        struct victim moving = lower->victims.stash[i];
        uint32_t j = i;

        for (; j > 0 && (lower->victims.stash[j - 1].key > moving.key ||
                         (lower->victims.stash[j - 1].key == moving.key &&
                          lower->victims.stash[j - 1].tensor > moving.tensor));
             j--) {
            lower->victims.stash[j] = lower->victims.stash[j - 1];
        }
        lower->victims.stash[j] = moving;
    }
    return count;
}

/*
 * Keeping a tensor adds its bytes to the replays after its last use in the chain, and to the op:
 * until then they count anyway. Does that fit beside `others`? `after` then grows.
 */
static bool fits_beside(struct lower *lower, uint32_t tensor, uint64_t others, uint64_t *after)
{
    uint64_t bytes = lower->tensors[tensor].rounded;
    uint64_t spare = lower->options.is_cautious ? bytes : 0;
    uint64_t most = *after;

    for (uint32_t i = lower->chain.last[tensor] + 1; i < lower->chain.count; i++) {
        most = lower->chain.bytes[i] > most ? lower->chain.bytes[i] : most;
    }
    if (!lower->options.is_soft && others + most + bytes + spare > lower->options.limit_bytes) {
        return false;
    }
    for (uint32_t i = lower->chain.last[tensor] + 1; i < lower->chain.count; i++) {
        lower->chain.bytes[i] += bytes;
    }
    *after += bytes;
    return true;
}

/* Keeps results that a later op needs, nearest use first, where they fit over the whole interval.
 */
static void choose_kept(struct lower *lower, uint32_t op, uint64_t others, uint64_t after)
{
    uint32_t count = list_wanted(lower, op);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t t = lower->victims.stash[i].tensor;
        uint32_t last = (uint32_t)lower->victims.stash[i].key - 1;
        int64_t bytes = (int64_t)lower->tensors[t].rounded;

        if (segment_tree_most(&lower->tree, op, last) + bytes >
                (int64_t)lower->options.limit_bytes ||
            !fits_beside(lower, t, others, &after)) {
            continue;
        }
        lower->chain.state[t] |= CHAIN_KEPT;
        segment_tree_add(&lower->tree, op, last, bytes);
        lower_due_remove(lower, t, lower_next_use(lower, t));
    }
}

void lower_chain_measure(struct lower *lower, uint32_t op, uint64_t fetched, uint64_t *peak,
                         uint64_t *after)
{
    find_last_uses(lower, op);
    run_dry(lower, peak, after);
    if (lower->options.with_collective) {
        choose_kept(lower, op, lower->held + fetched, *after);
        run_dry(lower, peak, after);
    }
}

static void drop_after(struct lower *lower, uint32_t index)
{
    const struct trace_op *replay = &lower->trace->ops[lower->chain.ops[index]];

    for (uint32_t j = 0; j < trace_operand_count(replay); j++) {
        uint32_t t = lower->trace->operands[replay->first + j];
        uint8_t state = lower->chain.state[t];
        capu_status status;

        if (state == 0 || state >= CHAIN_STAYS || lower->chain.last[t] != index) {
            continue;
        }
        status = plan_add_drop(lower->plan, t);
        if (status != CAPU_OK) {
            lower_fail(lower, status);
        }
        lower_release(lower, t, clock_usable(&lower->clock, t));
        if (state & CHAIN_FETCHED) {
            lower_due_again(lower, t);
        }
    }
}

static void issue_op(struct lower *lower, uint32_t number, uint32_t op)
{
    const struct trace_op *replay = &lower->trace->ops[number];
    uint64_t alloc_ns = 0;

    for (uint32_t j = 0; j < trace_operand_count(replay); j++) {
        uint32_t t = lower->trace->operands[replay->first + j];

        lower->tensors[t].last_replay = op + 1;
        if (j >= replay->read_count && lower->tensors[t].rounded > 0 &&
            !lower->tensors[t].is_resident) {
            uint64_t usable = clock_take(&lower->clock, lower->tensors[t].rounded);

            alloc_ns = usable > alloc_ns ? usable : alloc_ns;
            lower->clock.tensors[t].is_fresh = true;
            lower_set_resident(lower, t);
        }
    }
    clock_op(&lower->clock, lower->trace, number, alloc_ns);
    lower->result.replays[number]++;
}

void lower_chain_issue(struct lower *lower, uint32_t op)
{
    capu_status status;

    ASSERT(lower->chain.count > 0);
    status = plan_add_recompute(lower->plan, op);
    for (uint32_t i = 0; status == CAPU_OK && i < lower->chain.count; i++) {
        status = plan_add_replay(lower->plan, lower->chain.ops[i]);
        if (status == CAPU_OK) {
            issue_op(lower, lower->chain.ops[i], op);
            drop_after(lower, i);
        }
    }
    if (status != CAPU_OK) {
        lower_fail(lower, status);
    }
    for (uint32_t i = 0; i < lower->chain.tensor_count; i++) {
        uint32_t t = lower->chain.tensors[i];

        if (lower->chain.state[t] & CHAIN_KEPT) {
            lower_push_victim(lower, t, op);
        }
    }
}
