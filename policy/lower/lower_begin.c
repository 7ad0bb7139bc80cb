/*
 * The start of a walk: which decisions can be carried out, where each tensor starts, which bytes
 * every op is expected to hold, and when copies should start.
 *
 * Latest start times are found by one pass from the last op to the first: a copy must end by its
 * op's expected start and before the next copy on the same link starts. That is the latest schedule
 * of one machine with deadlines, and the walk uses it as priority: earliest deadline first.
 */
#include "base/assert.h"
#include "policy/lower/lower_state.h"

#include <string.h>

#define SOFT_POOL ((uint64_t)INT64_MAX / 2)

/* Does the op need a replay that reads the tensor of the virtual read directly? */
static bool is_needed(const struct lower *lower, uint32_t read)
{
    const struct trace *trace = lower->trace;
    const struct trace_op *op = &trace->ops[lower->gap_start[read]];

    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        uint32_t slot = lower->slot_of[op->first + i];
        const struct trace_op *maker;

        if ((lower->slot_flags[slot] & SLOT_FIRST) != 0 || lower->means[slot - 1] != DECIDE_DROP) {
            continue;
        }
        maker = &trace->ops[lower->gap_maker[slot - 1]];
        for (uint32_t j = 0; j < maker->read_count; j++) {
            if (trace_reads(trace, maker)[j] == lower->gap_tensor[read]) {
                return true;
            }
        }
    }
    return false;
}

/* A dead tensor that no replay needs from some virtual read on is dropped before it. */
static void drop_unneeded(struct lower *lower)
{
    for (uint32_t slot = lower->slot_count; slot-- > lower->trace->operand_count;) {
        bool is_kept = lower_ends_virtually(lower, slot) && lower->means[slot] != DECIDE_DROP;

        if (!is_kept && !is_needed(lower, slot)) {
            lower->means[lower_slot_before(lower, slot)] = DECIDE_DROP;
        }
    }
}

static void find_means(struct lower *lower)
{
    uint32_t gaps = lower->has_virtual ? lower->slot_count : lower->trace->operand_count;

    for (uint32_t gap = 0; gap < gaps; gap++) {
        uint8_t decision = lower->decisions[gap];

        ASSERT(decision <= DECIDE_RETURN);
        if ((decision == DECIDE_RETURN && !lower_can_return(lower, gap)) ||
            (decision == DECIDE_DROP && !lower_ends_virtually(lower, gap) &&
             (lower->no_drop[gap] || !lower_can_drop(lower, gap)))) {
            decision = DECIDE_KEEP;
        }
        lower->means[gap] = decision;
    }
    if (lower->has_virtual && !lower->is_unconditional) {
        drop_unneeded(lower);
    }
}

/* Adds the slot's op, and ends what is held there unless the gap after it is kept. `is_held`: the
   gap before it is. Returns that of the gap after it; `is_always` is that where it wraps. */
static bool add_slot(struct lower *lower, uint32_t slot, int64_t bytes, bool is_held,
                     bool is_always)
{
    uint32_t at = lower->gap_start[slot];
    bool is_kept =
        (lower->slot_flags[slot] & SLOT_WRAPS) != 0
            ? is_always
            : lower->gap_end[slot] != TRACE_INDEX_NONE && lower->means[slot] == DECIDE_KEEP;

    lower->base[at] += is_held ? 0 : bytes;
    lower->base[at + 1] -= is_kept ? 0 : bytes;
    return is_kept;
}

/* What each op is expected to hold: every access, and every gap that is kept. From a virtual read
   on that a drop precedes, the tensor is not expected at all. */
static void fill_tree(struct lower *lower)
{
    uint32_t ops = lower->trace->op_count;
    int64_t *base = lower->base;

    memset(base, 0, (ops + 1) * sizeof(*base));
    for (uint32_t t = 0; t < lower->trace->tensor_count; t++) {
        const struct lower_tensor *state = &lower->tensors[t];
        int64_t bytes = (int64_t)state->rounded;
        bool is_always = state->is_persistent && !state->starts_on_host;
        bool is_held = is_always;

        base[0] += is_held ? bytes : 0;
        for (uint32_t slot = state->first; slot < state->end && bytes > 0; slot++) {
            is_held = add_slot(lower, slot, bytes, is_held, is_always && !state->returns);
        }
        for (uint32_t slot = state->virtual_first; slot != TRACE_INDEX_NONE;
             slot = lower_slot_after(lower, t, slot)) {
            uint32_t before = lower_slot_before(lower, slot);

            lower->reached[slot] = lower->means[before] != DECIDE_DROP &&
                                   (before < state->end || lower->reached[before]);
            if (lower->reached[slot]) {
                is_held = add_slot(lower, slot, bytes, is_held, false);
            }
        }
    }
    for (uint32_t k = 1; k < ops; k++) {
        base[k] += base[k - 1];
    }
    segment_tree_fill(&lower->tree, base, ops);
}

/* The fetch that ends the gap goes before all in the lane, which it returns. */
static int64_t put_latest(struct lower *lower, uint32_t gap, int64_t lane, int64_t deadline)
{
    uint32_t tensor = lower->gap_tensor[gap];

    lane = lane < deadline ? lane : deadline;
    lane -= lower_spare_ns(lower->options.safety * (double)lower->clock.in_ns[tensor]);
    lane = lane > -LOWER_SPARE_NS ? lane : -LOWER_SPARE_NS;
    lower->latest[gap] = lane;
    return lane;
}

/* Those before the end of the iteration: what is used first in the next returns first. */
static int64_t plan_returns(struct lower *lower)
{
    const struct trace *trace = lower->trace;
    int64_t lane = INT64_MAX;

    for (uint32_t i = trace->operand_count; lower->has_returns && i-- > 0;) {
        uint32_t slot = lower->slot_of[i];
        uint32_t t = trace->operands[i];

        if ((lower->slot_flags[slot] & SLOT_FIRST) != 0 && lower->tensors[t].returns) {
            lane = put_latest(lower, lower->tensors[t].end - 1, lane,
                              (int64_t)lower->options.estimate_ns[trace->op_count]);
        }
    }
    return lane;
}

/* When each planned fetch must start, from the last deadline to the first: by its own deadline, and
   by the start of the next fetch on the same link. */
static void plan_latest(struct lower *lower)
{
    const struct trace *trace = lower->trace;
    int64_t lane = plan_returns(lower);

    for (uint32_t k = trace->op_count; k-- > 0;) {
        const struct trace_op *op = &trace->ops[k];
        int64_t deadline = (int64_t)lower->options.estimate_ns[k];

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t t = trace->operands[op->first + i];
            uint32_t slot = lower->slot_of[op->first + i];
            bool is_first = (lower->slot_flags[slot] & SLOT_FIRST) != 0;
            bool returns =
                is_first ? lower->tensors[t].starts_on_host
                         : lower->means[slot - 1] == DECIDE_SWAP && lower->gap_end[slot - 1] == k;

            if (returns) {
                lane = put_latest(lower, is_first ? lower->tensors[t].end - 1 : slot - 1, lane,
                                  deadline);
            }
        }
        for (uint32_t slot = lower_virtual_at(lower, k); slot != TRACE_INDEX_NONE;
             slot = lower->virtual_next[slot]) {
            uint32_t before = lower_slot_before(lower, slot);

            if (lower->reached[slot] && lower->means[before] == DECIDE_SWAP) {
                lane = put_latest(lower, before, lane, deadline);
            }
        }
    }
}

static void plan_saves(struct lower *lower)
{
    const struct trace_index *trace_index = lower->trace_index;

    for (uint32_t t = 0; t < lower->trace->tensor_count; t++) {
        uint8_t later = 0;
        uint32_t after = TRACE_INDEX_NONE;

        for (uint32_t slot = lower->tensors[t].virtual_first; slot != TRACE_INDEX_NONE;
             slot = lower_slot_after(lower, t, slot)) {
            after = slot;
        }
        for (uint32_t slot = after; after != TRACE_INDEX_NONE; slot--) {
            later |= lower->gap_end[slot] != TRACE_INDEX_NONE && lower->means[slot] == DECIDE_SWAP;
            lower->saves[slot] = later;
            if (slot == lower->tensors[t].virtual_first) {
                break;
            }
        }
        for (uint32_t slot = trace_index->first[t + 1]; slot-- > trace_index->first[t];) {
            bool is_last = slot + 1 == trace_index->first[t + 1];
            bool leaves =
                is_last && lower->tensors[t].is_persistent
                    ? lower->tensors[t].starts_on_host || lower->tensors[t].returns
                    : lower->gap_end[slot] != TRACE_INDEX_NONE && lower->means[slot] == DECIDE_SWAP;

            if (!is_last && trace_index->role[slot + 1] != USE_READ) {
                later = 0;
            }
            later |= leaves;
            lower->saves[slot] = later;
        }
    }
}

static void begin_tensors(struct lower *lower)
{
    for (uint32_t t = 0; t < lower->trace->tensor_count; t++) {
        struct lower_tensor *state = &lower->tensors[t];
        bool has_uses = state->first < state->end;

        state->is_resident = false;
        state->has_host = false;
        state->returns = false;
        state->gap = TRACE_INDEX_NONE;
        state->is_due = false;
        state->last_replay = 0;
        state->guard = 0;
        state->key = 0;
        if (!state->is_persistent || state->rounded == 0) {
            continue;
        }
        if (has_uses && lower->decisions[state->end - 1] == DECIDE_SWAP &&
            lower_fits_host(lower, t)) {
            state->starts_on_host = true;
        }
        if (state->starts_on_host) {
            state->has_host = true;
            lower->host_held += lower->trace->tensors[t].bytes;
            continue;
        }
        if (has_uses && lower->means[state->end - 1] == DECIDE_RETURN &&
            lower_fits_host(lower, t)) {
            state->returns = true;
            state->has_host = true;
            lower->has_returns = true;
            lower->host_held += lower->trace->tensors[t].bytes;
        }
        lower_set_resident(lower, t);
        if (has_uses) {
            lower_push_victim(lower, t, 0);
        }
    }
}

static void begin_lists(struct lower *lower)
{
    uint32_t ops = lower->trace->op_count;

    bits_clear(&lower->due.ops);
    lower->due.head[ops] = NO_OP;
    for (uint32_t k = 0; k < ops; k++) {
        lower->due.head[k] = NO_OP;
        lower->result.profile[k] = 0;
        lower->result.replays[k] = 0;
    }
    for (uint32_t t = 0; t < lower->trace->tensor_count; t++) {
        const struct lower_tensor *state = &lower->tensors[t];

        if (state->starts_on_host && state->rounded > 0) {
            lower_due_add(lower, t, lower->trace_index->op[state->first],
                          lower->latest[state->end - 1]);
        }
    }
}

void lower_begin(struct lower *lower)
{
    uint64_t limit = lower->options.is_soft ? SOFT_POOL : lower->options.limit_bytes;

    memset(lower->forced, 0, lower->slot_count);
    memset(lower->chain.reads, 0, lower->slot_count * sizeof(*lower->chain.reads));
    lower->status = CAPU_OK;
    lower->has_given_up = false;
    lower->has_returns = false;
    lower->held = 0;
    lower->host_held = 0;
    lower->victims.count = 0;
    lower->copies.out.count = 0;
    lower->copies.in.count = 0;
    lower->copies.draining_first = 0;
    lower->copies.draining.count = 0;
    lower->copies.draining_bytes = 0;
    find_means(lower);
    begin_tensors(lower);
    fill_tree(lower);
    plan_latest(lower);
    if (lower->options.with_save) {
        plan_saves(lower);
    }
    begin_lists(lower);
    clock_reset(&lower->clock, limit > lower->held ? limit - lower->held : 0);
}
