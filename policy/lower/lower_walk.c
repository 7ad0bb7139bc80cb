/*
 * One walk over the ops. At each op, in issue order: room is made (by evictions, written as issued
 * after the previous op), what is on the host is fetched, what was dropped is replayed, the op
 * runs, and its operands are treated as the decisions for their gaps say.
 *
 * The clock runs along, so that the walk knows when copies end and when links are idle. Victims are
 * chosen by Belady's rule (the farthest next use) or by least recent use.
 *
 * Invariant: `tree` holds the bytes that every op is expected to hold under the decisions made so
 * far. A tensor that stays, or is fetched early, must fit into it over its whole interval. So
 * keeping one tensor never forces another one out later.
 */
#include "base/array.h"
#include "base/assert.h"
#include "policy/lower/lower_state.h"

#include <string.h>

/* How many prefetches that do not fit are skipped for later ones, and how many are looked at ahead.
 */
#define PASSED_OVER_MAX 8
#define AHEAD_MAX 64

static void act(struct lower *lower, enum action_kind kind, uint32_t tensor, uint32_t point)
{
    capu_status status = plan_add(lower->plan, kind, tensor, point);

    if (status != CAPU_OK) {
        lower_fail(lower, status);
    }
}

static void put_span(struct lower *lower, struct spans *spans, struct clock_span span)
{
    if (span.end > CLOCK_NS_MAX) {
        lower_fail(lower, CAPU_TOO_LARGE);
    }
    if (!array_reserve(&spans->list, &spans->capacity, (size_t)spans->count + 1,
                       sizeof(*spans->list))) {
        lower_fail(lower, CAPU_NO_HOST_MEMORY);
        return;
    }
    spans->list[spans->count++] = (struct span){.start = span.start, .end = span.end};
}

/* The last op at which a tensor that may be evicted is expected to be held if it stays until its
   next use. */
static uint32_t held_until(const struct lower *lower, uint32_t tensor)
{
    uint32_t next = lower_next_use(lower, tensor);

    ASSERT(next != NO_OP);
    return next > lower->trace->op_count ? lower->trace->op_count - 1 : next - 1;
}

static void forget_host(struct lower *lower, uint32_t tensor)
{
    if (lower->tensors[tensor].has_host) {
        lower->tensors[tensor].has_host = false;
        lower->host_held -= lower->trace->tensors[tensor].bytes;
    }
}

/* Evicted bytes stay in use until their copy has ended: the profile counts them. */
static void drain_bytes(struct lower *lower, uint64_t bytes, uint64_t end)
{
    put_span(lower, &lower->copies.draining, (struct clock_span){.start = bytes, .end = end});
    lower->copies.draining_bytes += bytes;
}

/* Evicts now. A tensor that is never written has, in steady state, a host copy already. */
static void evict_tensor(struct lower *lower, uint32_t tensor, uint32_t after)
{
    uint64_t usable = clock_usable(&lower->clock, tensor);

    act(lower, ACTION_EVICT, tensor, after);
    if (!lower->tensors[tensor].has_host) {
        lower->tensors[tensor].has_host = true;
        lower->host_held += lower->trace->tensors[tensor].bytes;
        if (lower->trace_index->final_version[tensor] > 0) {
            struct clock_span span = clock_evict(&lower->clock, tensor);

            put_span(lower, &lower->copies.out, span);
            drain_bytes(lower, lower->tensors[tensor].rounded, span.end);
            usable = span.end;
        }
    }
    lower_release(lower, tensor, usable);
}

static void fetch_tensor(struct lower *lower, uint32_t tensor, uint32_t before)
{
    uint64_t alloc_ns = clock_take(&lower->clock, lower->tensors[tensor].rounded);

    act(lower, ACTION_PREFETCH, tensor, before);
    put_span(lower, &lower->copies.in, clock_prefetch(&lower->clock, tensor, alloc_ns));
    lower_set_resident(lower, tensor);
    lower_push_victim(lower, tensor, before);
}

/* Is the tensor there only for replays? */
static bool is_dead(const struct lower *lower, uint32_t tensor)
{
    uint32_t gap = lower->tensors[tensor].gap;

    return gap != TRACE_INDEX_NONE && lower_ends_virtually(lower, gap);
}

static void force_out(struct lower *lower, uint32_t tensor, uint32_t op)
{
    uint32_t next = lower_next_use(lower, tensor);
    uint32_t ops = lower->trace->op_count;
    uint32_t gap = lower->tensors[tensor].gap == TRACE_INDEX_NONE
                       ? lower->trace_index->first[tensor + 1] - 1
                       : lower->tensors[tensor].gap;

    lower->forced[gap] = 1;
    if (op == 0) {
        /* No action can precede the first op: the tensor starts on the host instead. */
        lower->host_held +=
            lower->tensors[tensor].has_host ? 0 : lower->trace->tensors[tensor].bytes;
        lower->tensors[tensor].starts_on_host = true;
        lower->tensors[tensor].returns = false;
        lower->tensors[tensor].has_host = true;
        lower_release(lower, tensor, 0);
    } else if ((is_dead(lower, tensor) && !lower->tensors[tensor].has_host) ||
               (next < ops && !lower_next_needs(lower, tensor))) {
        /* Not worth a copy; or carried over from the previous iteration, and overwritten before it
           is read. */
        act(lower, ACTION_DROP, tensor, op - 1);
        lower_release(lower, tensor, clock_usable(&lower->clock, tensor));
    } else {
        evict_tensor(lower, tensor, op - 1);
    }
    if (next >= ops) {
        lower->must_restart |= !lower->tensors[tensor].starts_on_host;
        lower->tensors[tensor].starts_on_host = true;
    } else if (lower->tensors[tensor].has_host) {
        lower_due_again(lower, tensor);
    }
    segment_tree_add(&lower->tree, op, held_until(lower, tensor),
                     -(int64_t)lower->tensors[tensor].rounded);
}

static bool may_leave(const struct lower *lower, uint32_t tensor, uint32_t op)
{
    /* Before the first op there are only tensors that were there before the iteration. */
    ASSERT(op > 0 || lower->trace->tensors[tensor].persistent);
    if (lower->tensors[tensor].guard == op + 1) {
        return false;
    }
    return is_dead(lower, tensor) || lower_fits_host(lower, tensor);
}

static bool make_room(struct lower *lower, uint32_t op, uint64_t bytes)
{
    uint32_t stashed = 0;

    while (lower->held + bytes > lower->options.limit_bytes && lower->victims.count > 0) {
        struct victim victim = lower_heap_pop(lower);

        if (lower->tensors[victim.tensor].key != victim.key) {
            continue; /* it has left, or been pushed again, since */
        }
        ASSERT(lower->tensors[victim.tensor].is_resident);
        if (may_leave(lower, victim.tensor, op)) {
            force_out(lower, victim.tensor, op);
        } else {
            lower->victims.stash[stashed++] = victim;
            lower->tensors[victim.tensor].key = 0;
        }
    }
    while (stashed > 0) {
        struct victim victim = lower->victims.stash[--stashed];

        lower->tensors[victim.tensor].key = victim.key;
        lower_heap_push(lower, victim);
    }
    return lower->options.is_soft || lower->held + bytes <= lower->options.limit_bytes;
}

/* Prefetches that are due or may start early, in order of their deadlines. */
static void issue_due(struct lower *lower, uint32_t op, uint64_t needed)
{
    const struct lower_options *options = &lower->options;
    int64_t now = (int64_t)options->estimate_ns[op + 1];
    bool is_last = op + 1 == lower->trace->op_count;
    uint32_t passed_over = 0;
    uint32_t seen = 0;

    for (uint32_t end = lower_due_next_op(lower, op + 1);
         end != NO_OP && (is_last || (passed_over < PASSED_OVER_MAX && seen < AHEAD_MAX));
         end = lower_due_next_op(lower, end + 1)) {
        uint32_t next;

        for (uint32_t t = lower->due.head[end]; t != NO_OP; t = next) {
            int64_t bytes = (int64_t)lower->tensors[t].rounded;
            int64_t early = lower_spare_ns(options->lead * (double)lower->clock.in_ns[t]);
            bool is_due = lower->tensors[t].due_latest < now || is_last;

            next = lower->tensors[t].due_next;
            seen++;
            if (!is_due && (options->is_soft || lower->tensors[t].due_latest - early >= now ||
                            lower->clock.h2d > lower->clock.compute + lower->trace->ops[op].ns)) {
                return;
            }
            if (!options->is_soft &&
                (lower->held + needed + (uint64_t)bytes > options->limit_bytes ||
                 segment_tree_most(&lower->tree, op, end - 1) + bytes >
                     (int64_t)options->limit_bytes)) {
                passed_over++;
                continue;
            }
            lower_due_remove(lower, t, end);
            segment_tree_add(&lower->tree, op, end - 1, bytes);
            fetch_tensor(lower, t, op);
        }
    }
}

static bool is_wanted(const struct lower *lower, const struct trace_op *op, uint32_t i)
{
    uint32_t tensor = lower->trace->operands[op->first + i];
    bool is_write = i >= op->read_count && i < op->read_count + op->write_count;

    if (lower->tensors[tensor].rounded == 0 || lower->tensors[tensor].is_resident) {
        return false;
    }
    /* What starts on the host must be fetched even to be overwritten: otherwise it would start
       resident. */
    return !is_write || (lower->tensors[tensor].gap == TRACE_INDEX_NONE &&
                         lower->tensors[tensor].starts_on_host);
}

/* Fetches the operands that are on the host, issues prefetches that may start early, then replays.
 */
static void bring_back(struct lower *lower, uint32_t k, uint64_t fetched, uint64_t needed)
{
    const struct trace_op *op = &lower->trace->ops[k];

    for (uint32_t i = 0; fetched > 0 && i < trace_operand_count(op); i++) {
        uint32_t tensor = lower->trace->operands[op->first + i];

        if (is_wanted(lower, op, i) && lower->tensors[tensor].has_host) {
            lower_due_remove(lower, tensor, k);
            fetch_tensor(lower, tensor, k);
        }
    }
    for (uint32_t i = 0; i < lower->chain.fetch_count; i++) {
        uint32_t tensor = lower->chain.fetch[i];
        uint32_t due = lower_due_op(lower, tensor);

        if (due != NO_OP) {
            lower_due_remove(lower, tensor, due);
        }
        fetch_tensor(lower, tensor, k);
    }
    if (lower->options.with_prefetch) {
        issue_due(lower, k, needed);
    }
    if (lower->chain.count > 0) {
        lower_chain_issue(lower, k);
    }
}

/* After this, everything that op k needs is on the device, and there is room for what it writes. */
static void prepare_op(struct lower *lower, uint32_t k)
{
    const struct trace_op *op = &lower->trace->ops[k];
    uint64_t fetched = 0;
    uint64_t peak = 0;
    uint64_t after = 0;
    uint64_t needed;
    bool has_chain = false;

    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        uint32_t tensor = lower->trace->operands[op->first + i];

        lower->tensors[tensor].guard = k + 1;
        if (is_wanted(lower, op, i)) {
            fetched += lower->tensors[tensor].has_host ? lower->tensors[tensor].rounded : 0;
            has_chain |= !lower->tensors[tensor].has_host;
        }
    }
    if (has_chain && !lower_chain_build(lower, k)) {
        return;
    }
    has_chain = lower->chain.count > 0;
    if (has_chain) {
        lower_chain_measure(lower, k, fetched, &peak, &after);
    }
    for (uint32_t i = op->read_count; i < op->read_count + op->write_count; i++) {
        uint32_t tensor = lower->trace->operands[op->first + i];

        if (!lower->tensors[tensor].is_resident && !is_wanted(lower, op, i)) {
            after += lower->tensors[tensor].rounded;
        }
    }
    needed = fetched + (peak > after ? peak : after);
    if (!make_room(lower, k, needed)) {
        if (has_chain) {
            lower_chain_give_up(lower, k);
        } else {
            lower_fail(lower, lower->options.host_bytes != UINT64_MAX ? CAPU_HOST_OVER_BUDGET
                                                                      : CAPU_OVER_BUDGET);
        }
        return;
    }
    if (has_chain) {
        lower->result.profile[k] = (int64_t)(lower->held + needed + lower->copies.draining_bytes);
    }
    bring_back(lower, k, fetched, needed);
}

static void run_op(struct lower *lower, uint32_t k)
{
    const struct trace_op *op = &lower->trace->ops[k];
    uint64_t alloc_ns = 0;
    struct clock_span span;

    for (uint32_t i = op->read_count; i < op->read_count + op->write_count; i++) {
        uint32_t tensor = lower->trace->operands[op->first + i];

        if (lower->tensors[tensor].rounded > 0 && !lower->tensors[tensor].is_resident) {
            uint64_t usable = clock_take(&lower->clock, lower->tensors[tensor].rounded);

            alloc_ns = usable > alloc_ns ? usable : alloc_ns;
            lower->clock.tensors[tensor].is_fresh = true;
            lower_set_resident(lower, tensor);
        }
    }
    span = clock_op(&lower->clock, lower->trace, k, alloc_ns);
    lower->result.start_ns[k] = span.start;
    /* Time lost so far is never regained. */
    if (span.end > CLOCK_NS_MAX) {
        lower_fail(lower, CAPU_TOO_LARGE);
    }
    if (lower->options.cutoff_ns > 0 &&
        span.end + (lower->trace->total_ns - lower->ideal_ns[k + 1]) >= lower->options.cutoff_ns) {
        lower_fail(lower, CAPU_OVER_BUDGET);
    }
    while (lower->copies.draining_first < lower->copies.draining.count &&
           lower->copies.draining.list[lower->copies.draining_first].end <= span.start) {
        lower->copies.draining_bytes -=
            lower->copies.draining.list[lower->copies.draining_first++].start;
    }
    if ((int64_t)(lower->held + lower->copies.draining_bytes) > lower->result.profile[k]) {
        lower->result.profile[k] = (int64_t)(lower->held + lower->copies.draining_bytes);
    }
}

/* A copy ahead of the memory pressure, while the link is idle. */
static void save_ahead(struct lower *lower, uint32_t tensor, uint32_t gap, uint32_t k)
{
    if (lower->tensors[tensor].has_host || !lower->saves[gap] ||
        lower->clock.d2h > lower->clock.compute || !lower_fits_host(lower, tensor)) {
        return;
    }
    act(lower, ACTION_SAVE, tensor, k);
    put_span(lower, &lower->copies.out, clock_save(&lower->clock, tensor));
    lower->tensors[tensor].has_host = true;
    lower->host_held += lower->trace->tensors[tensor].bytes;
}

static void end_of_life(struct lower *lower, uint32_t tensor, uint32_t k)
{
    if (lower->tensors[tensor].is_resident) {
        act(lower, ACTION_DROP, tensor, k);
        lower_release(lower, tensor, clock_usable(&lower->clock, tensor));
    }
    forget_host(lower, tensor);
}

/* An operand after its op: it leaves, or it stays until its next use. */
static void settle_operand(struct lower *lower, uint32_t tensor, uint32_t gap, uint32_t k)
{
    uint32_t end = lower->gap_end[gap];
    bool wraps = (lower->slot_flags[gap] & SLOT_WRAPS) != 0;
    enum decision decision = (enum decision)lower->means[gap];

    if (!wraps && lower_next_use(lower, tensor) == NO_OP) {
        end_of_life(lower, tensor, k);
        return;
    }
    if (end == TRACE_INDEX_NONE) {
        /* The next access overwrites it. */
        if (lower->trace_index->op[gap + 1] > k + 1) {
            act(lower, ACTION_DROP, tensor, k);
            lower_release(lower, tensor, clock_usable(&lower->clock, tensor));
        }
        return;
    }
    if ((wraps && (lower->tensors[tensor].starts_on_host || lower->tensors[tensor].returns)) ||
        (!wraps && decision == DECIDE_SWAP && end > k + 1 && lower_fits_host(lower, tensor))) {
        evict_tensor(lower, tensor, k);
        if (!wraps || lower->tensors[tensor].returns) {
            lower_due_add(lower, tensor, wraps ? lower->trace->op_count : end, lower->latest[gap]);
        }
        return;
    }
    if (!wraps && decision == DECIDE_DROP && end > k + 1) {
        act(lower, ACTION_DROP, tensor, k);
        lower_release(lower, tensor, clock_usable(&lower->clock, tensor));
        return;
    }
    if (lower->options.with_save) {
        save_ahead(lower, tensor, gap, k);
    }
    lower_push_victim(lower, tensor, k);
}

/* A virtual read before which the tensor was dropped, and a replay has made it again: is there room
   to keep it until the next? */
static bool fits_until_next(struct lower *lower, uint32_t tensor, uint32_t slot, uint32_t k)
{
    uint32_t last = lower->gap_end[slot] - 1;
    int64_t bytes = (int64_t)lower->tensors[tensor].rounded;

    if (lower->means[slot] == DECIDE_SWAP) {
        return true;
    }
    if (segment_tree_most(&lower->tree, k + 1, last) + bytes >
        (int64_t)lower->options.limit_bytes) {
        return false;
    }
    segment_tree_add(&lower->tree, k + 1, last, bytes);
    return true;
}

/* A tensor that is not there at a virtual read is due at the next instead, if it is on the host. */
static void pass_virtual(struct lower *lower, uint32_t slot, uint32_t k)
{
    uint32_t tensor = lower->gap_tensor[slot];
    struct lower_tensor *state = &lower->tensors[tensor];
    bool dies;

    lower_due_remove(lower, tensor, k);
    state->gap = slot;
    dies = lower_next_use(lower, tensor) == NO_OP;
    if (state->is_resident) {
        if (!dies && !lower->reached[slot]) {
            dies = !fits_until_next(lower, tensor, slot, k);
        }
        if (dies) {
            end_of_life(lower, tensor, k);
        } else {
            settle_operand(lower, tensor, slot, k);
        }
        return;
    }
    if (!dies && lower->reached[slot] && lower->means[slot] == DECIDE_KEEP) {
        segment_tree_add(&lower->tree, k + 1, lower->gap_end[slot] - 1, -(int64_t)state->rounded);
    }
    if (!dies && state->has_host) {
        lower_due_add(lower, tensor, lower->gap_end[slot], lower->latest[slot]);
    } else {
        forget_host(lower, tensor);
    }
}

static void finish_op(struct lower *lower, uint32_t k)
{
    const struct trace_op *op = &lower->trace->ops[k];

    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        uint32_t tensor = lower->trace->operands[op->first + i];
        uint32_t gap = lower->slot_of[op->first + i];

        lower->tensors[tensor].gap = gap;
        if (i >= op->read_count) {
            forget_host(lower, tensor);
        }
        if (lower->tensors[tensor].rounded > 0) {
            settle_operand(lower, tensor, gap, k);
        }
    }
    for (uint32_t slot = lower_virtual_at(lower, k); slot != TRACE_INDEX_NONE;
         slot = lower->virtual_next[slot]) {
        pass_virtual(lower, slot, k);
    }
}

/* Each op's share of the time that a link is busy. Spans of one link are in order. */
static void share_busy(const struct lower *lower, const struct spans *spans, uint64_t *busy)
{
    const uint64_t *start = lower->result.start_ns;
    uint32_t k = 0;

    memset(busy, 0, lower->trace->op_count * sizeof(*busy));
    for (uint32_t i = 0; i < spans->count; i++) {
        uint64_t from = spans->list[i].start;

        while (from < spans->list[i].end && k < lower->trace->op_count) {
            uint64_t to = spans->list[i].end < start[k + 1] ? spans->list[i].end : start[k + 1];

            if (to > from) {
                busy[k] += to - from;
                from = to;
            }
            k += start[k + 1] <= from;
        }
    }
}

static void conclude(struct lower *lower)
{
    uint32_t ops = lower->trace->op_count;
    int64_t most = 0;

    /* There was no room for these. */
    for (uint32_t t = lower->due.head[ops]; t != NO_OP; t = lower->tensors[t].due_next) {
        lower->tensors[t].starts_on_host = true;
        lower->must_restart = true;
    }

    lower->result.start_ns[ops] = lower->clock.compute;
    for (uint32_t k = 0; k < ops; k++) {
        most = lower->result.profile[k] > most ? lower->result.profile[k] : most;
    }
    lower->result.excess_most = most - (int64_t)lower->options.limit_bytes;
    share_busy(lower, &lower->copies.out, lower->result.out_busy);
    share_busy(lower, &lower->copies.in, lower->result.in_busy);
}

capu_status lower_walk(struct lower *lower)
{
    lower_begin(lower);
    for (uint32_t k = 0; k < lower->trace->op_count; k++) {
        lower->work++;
        lower->chain.count = 0;
        lower->chain.fetch_count = 0;
        prepare_op(lower, k);
        if (lower->status != CAPU_OK || lower->has_given_up) {
            return lower->status;
        }
        run_op(lower, k);
        finish_op(lower, k);
    }
    conclude(lower);
    return lower->status;
}
