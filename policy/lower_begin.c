/*
 * The start of a walk: which decisions can be carried out, where each tensor starts, which bytes
 * every op is expected to hold, and when copies should start.
 *
 * Latest start times are found by one pass from the last op to the first: a copy must end by its
 * op's expected start and before the next copy on the same link starts. That is the latest schedule
 * of one machine with deadlines, and the walk uses it as priority: earliest deadline first.
 */
#include "base/assert.h"
#include "policy/lower_state.h"

#include <string.h>

#define SOFT_POOL ((uint64_t)INT64_MAX / 2)

static void find_means(struct lower *lower)
{
    for (uint32_t gap = 0; gap < lower->trace->operand_count; gap++) {
        uint8_t decision = lower->decisions[gap];

        ASSERT(decision <= DECIDE_DROP);
        if (decision == DECIDE_DROP && (lower->no_drop[gap] || !lower_can_drop(lower, gap))) {
            decision = DECIDE_KEEP;
        }
        lower->means[gap] = decision;
    }
}

/* What each op is expected to hold: every access, and every gap that is kept. */
static void fill_tree(struct lower *lower)
{
    const struct trace_index *trace_index = lower->trace_index;
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
            bool is_last = (lower->slot_flags[slot] & SLOT_LAST) != 0;
            uint32_t to = trace_index->op[slot] + 1;

            base[trace_index->op[slot]] += is_held ? 0 : bytes;
            is_held = is_last ? is_always
                              : lower->gap_end[slot] != TRACE_INDEX_NONE &&
                                    lower->means[slot] == DECIDE_KEEP;
            if (is_last && !state->is_persistent && lower->extended_life != NULL &&
                lower->extended_life[t] >= to) {
                to = lower->extended_life[t] + 1;
            }
            base[to] -= is_held ? 0 : bytes;
        }
    }
    for (uint32_t k = 1; k < ops; k++) {
        base[k] += base[k - 1];
    }
    segment_tree_fill(&lower->tree, base, ops);
}

/* When each planned fetch must start, from the last deadline to the first: by its own deadline, and
   by the start of the next fetch on the same link. */
static void plan_latest(struct lower *lower)
{
    const struct trace *trace = lower->trace;
    int64_t lane = INT64_MAX;

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
                uint32_t gap = is_first ? lower->tensors[t].end - 1 : slot - 1;

                lane = lane < deadline ? lane : deadline;
                lane -= lower_spare_ns(lower->options.safety * (double)lower->clock.in_ns[t]);
                lane = lane > -LOWER_SPARE_NS ? lane : -LOWER_SPARE_NS;
                lower->latest[gap] = lane;
            }
        }
    }
}

static void plan_saves(struct lower *lower)
{
    const struct trace_index *trace_index = lower->trace_index;

    for (uint32_t t = 0; t < lower->trace->tensor_count; t++) {
        uint8_t later = 0;

        for (uint32_t slot = trace_index->first[t + 1]; slot-- > trace_index->first[t];) {
            bool is_last = slot + 1 == trace_index->first[t + 1];
            bool leaves = is_last ? lower->tensors[t].starts_on_host
                                  : lower->gap_end[slot] != TRACE_INDEX_NONE &&
                                        lower->means[slot] == DECIDE_SWAP;

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
        lower_set_resident(lower, t);
        if (has_uses) {
            lower_push_victim(lower, t, 0);
        }
    }
}

static void begin_lists(struct lower *lower)
{
    uint32_t ops = lower->trace->op_count;

    bits_clear(&lower->due_ops);
    for (uint32_t k = 0; k < ops; k++) {
        lower->due_head[k] = NO_OP;
        lower->extended_life_head[k] = NO_OP;
        lower->result.profile[k] = 0;
        lower->result.replays[k] = 0;
    }
    for (uint32_t t = 0; t < lower->trace->tensor_count; t++) {
        const struct lower_tensor *state = &lower->tensors[t];

        if (state->starts_on_host && state->rounded > 0) {
            lower_due_add(lower, t, lower->trace_index->op[state->first],
                          lower->latest[state->end - 1]);
        }
        if (lower->extended_life != NULL && lower->extended_life[t] > 0 &&
            state->first < state->end &&
            lower->extended_life[t] > lower->trace_index->op[state->end - 1] &&
            !state->is_persistent) {
            ASSERT(lower->extended_life[t] < ops);
            lower->extended_life_next[t] = lower->extended_life_head[lower->extended_life[t]];
            lower->extended_life_head[lower->extended_life[t]] = t;
        }
    }
}

void lower_begin(struct lower *lower)
{
    uint64_t limit = lower->options.is_soft ? SOFT_POOL : lower->options.limit_bytes;

    memset(lower->forced, 0, lower->trace->operand_count);
    memset(lower->chain_reads, 0, lower->trace->operand_count * sizeof(*lower->chain_reads));
    lower->status = CAPU_OK;
    lower->has_given_up = false;
    lower->held = 0;
    lower->host_held = 0;
    lower->victim_count = 0;
    lower->out_spans.count = 0;
    lower->in_spans.count = 0;
    lower->draining_first = 0;
    lower->draining.count = 0;
    lower->draining_bytes = 0;
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
