/*
 * What bridging a gap by replays needs and costs.
 *
 * The producers of what the gap holds are followed depth first, with an explicit stack, as seen
 * from the gap's end: an input that is present there ends the search, any other has to be made
 * again first. With decisions, an input is missing if they drop it; without, only if it is dead.
 * Ops that the last lowering replays anyway cost nothing more. Bounded by CHAIN_MAX ops.
 */
#include "base/assert.h"
#include "policy/lower/lower_state.h"

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
        lower->chain_reads[there]++;
    }
    return TRACE_INDEX_NONE;
}

/*
 * Follows the producers of what a gap holds, as seen from the gap's end. Is everything present, or
 * can it be made again? Adds up the cost.
 */
static bool follow(struct lower *lower, uint32_t gap, struct following *following)
{
    const struct trace *trace = lower->trace;
    const uint8_t *decisions = following->decisions;
    bool is_again = following->is_wary && is_dropped_elsewhere(lower, decisions, gap);
    uint32_t at = lower->gap_end[gap];
    uint32_t stamp = lower_next_stamp(lower);
    uint32_t depth = 1;
    uint32_t visited = 0;

    lower->stack[0] = gap;
    while (depth > 0) {
        uint32_t maker = lower->gap_maker[lower->stack[--depth]];
        const struct trace_op *op;

        if (maker == NO_OP || !trace->ops[maker].replayable || lower->until[maker] < at) {
            return false;
        }
        if (lower->op_stamp[maker] == stamp) {
            continue;
        }
        if (++visited > CHAIN_MAX) {
            return false;
        }
        lower->op_stamp[maker] = stamp;
        op = &trace->ops[maker];
        if (decisions == NULL || lower->result.replays[maker] == 0 || (visited == 1 && is_again)) {
            following->cost += op->ns;
        }
        for (uint32_t i = 0; i < op->read_count; i++) {
            uint32_t r = trace->operands[op->first + i];
            uint32_t there;

            if (trace->tensors[r].persistent || !trace->tensors[r].managed ||
                lower->tensor_stamp[r] == stamp) {
                continue;
            }
            lower->tensor_stamp[r] = stamp;
            there = gap_at(lower, r, at, decisions != NULL);
            if (there == TRACE_INDEX_NONE) {
                return false;
            }
            there = follow_input(lower, following, there, at);
            if (there != TRACE_INDEX_NONE) {
                lower->stack[depth++] = there;
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
                   lower->trace->tensors[tensor].managed && follow(lower, gap, &following);

        lower->droppable[gap] = can ? 1 : 2;
    }
    return lower->droppable[gap] == 1;
}

uint64_t lower_drop_cost(struct lower *lower, const uint8_t *decisions, uint32_t gap, bool is_wary)
{
    struct following following = {.decisions = decisions, .is_wary = is_wary};

    return lower_can_drop(lower, gap) && follow(lower, gap, &following) ? following.cost
                                                                        : UINT64_MAX;
}

void lower_note_drop(struct lower *lower, const uint8_t *decisions, uint32_t gap)
{
    struct following following = {.decisions = decisions, .is_taken = true};

    ASSERT(gap < lower->slot_count);
    follow(lower, gap, &following);
}

uint32_t lower_chain_reads(const struct lower *lower, uint32_t gap)
{
    ASSERT(gap < lower->slot_count);
    return lower->chain_reads[gap];
}

uint64_t lower_replay_ns(const struct lower *lower, uint32_t gap)
{
    uint32_t maker;

    ASSERT(gap < lower->slot_count);
    maker = lower->gap_maker[gap];
    return maker != NO_OP ? lower->trace->ops[maker].ns : 0;
}
