/*
 * Lowering: what follows from the trace alone, with the choice of virtual reads, and the loop
 * around the walk.
 *
 * The index is built once per trace: where each gap ends, which op made the contents, and up to
 * which op a replay of each op is still legal (until one of its operands gets new contents).
 *
 * One walk may find that something does not work: a chain of replays does not fit, or a persistent
 * tensor has to start the iteration on the host. It notes that (`no_drop`, `starts_on_host`), and
 * the walk is repeated with fewer wishes; within one lowering both only grow. From WALKS_WITH_DROPS
 * walks on nothing is dropped, and from WALKS_WITH_RESIDENTS on every persistent tensor starts on
 * the host, so that the loop ends with a result.
 */
#include "policy/lower/lower.h"

#include "base/array.h"
#include "base/assert.h"
#include "policy/lower/lower_state.h"

#include <stdlib.h>
#include <string.h>

/*
 * The choice of virtual reads. One dead tensor may stand for several larger ones: where elementwise
 * ops keep their results for backward, all of them can be replayed from what the first one read.
 * That tensor is a candidate if the results that are made from it directly, and idle from before
 * its death to after it, together are clearly larger. Any tensor is, for results that are needed
 * again soon after its death: for these it need not be kept for long. Small tensors are not worth a
 * decision.
 */

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
static void arrange_reads(struct virtual_reads *reads, uint32_t first)
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
static bool consider_tensor(const struct trace_index *trace_index, struct growing *growing,
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
    arrange_reads(growing->reads, first);
    return true;
}

static bool list_reads(const struct trace_index *trace_index, struct growing *growing)
{
    for (uint32_t t = 0; t < trace_index->trace->tensor_count; t++) {
        if (is_made_once(trace_index, t) &&
            trace_index->trace->tensors[t].bytes >= trace_index->peak_bytes / LEAST_PART &&
            !consider_tensor(trace_index, growing, t)) {
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

/* A walk that had to give something up is repeated; each time it asks for less. */
#define WALKS_MAX 48
#define WALKS_WITH_DROPS 32     /* from here on nothing is dropped any more */
#define WALKS_WITH_RESIDENTS 40 /* from here on every persistent tensor starts on the host */

static void *allocate_block(struct lower *lower, size_t count, size_t element_bytes)
{
    void *memory = calloc(count + 1, element_bytes);

    lower->blocks[lower->block_count++] = memory;
    lower->has_failed |= memory == NULL;
    return memory;
}

static void allocate_index(struct lower *lower)
{
    size_t operands = lower->slot_count;
    size_t ops = lower->trace->op_count;

    lower->gap_start = allocate_block(lower, operands, sizeof(*lower->gap_start));
    lower->gap_end = allocate_block(lower, operands, sizeof(*lower->gap_end));
    lower->gap_tensor = allocate_block(lower, operands, sizeof(*lower->gap_tensor));
    lower->slot_flags = allocate_block(lower, operands, 1);
    lower->gap_maker = allocate_block(lower, operands, sizeof(*lower->gap_maker));
    lower->slot_of = allocate_block(lower, operands, sizeof(*lower->slot_of));
    lower->until = allocate_block(lower, ops, sizeof(*lower->until));
    lower->droppable = allocate_block(lower, operands, 1);
    lower->forced = allocate_block(lower, operands, 1);
    lower->no_drop = allocate_block(lower, operands, 1);
    lower->means = allocate_block(lower, operands, 1);
    lower->latest = allocate_block(lower, operands, sizeof(*lower->latest));
    lower->saves = allocate_block(lower, operands, 1);
    lower->search.stack =
        allocate_block(lower, operands + lower->trace->tensor_count, sizeof(*lower->search.stack));
    lower->search.op_stamp = allocate_block(lower, ops, sizeof(*lower->search.op_stamp));
    lower->chain.ops = allocate_block(lower, ops, sizeof(*lower->chain.ops));
    lower->chain.reads = allocate_block(lower, operands, sizeof(*lower->chain.reads));
    lower->chain.bytes = allocate_block(lower, ops, sizeof(*lower->chain.bytes));
    lower->base = allocate_block(lower, ops + 1, sizeof(*lower->base));
    lower->due.head = allocate_block(lower, ops + 1, sizeof(*lower->due.head));
    lower->virtual_head = allocate_block(lower, ops, sizeof(*lower->virtual_head));
    lower->virtual_next = allocate_block(lower, operands, sizeof(*lower->virtual_next));
    lower->reached = allocate_block(lower, operands, 1);
    lower->ideal_ns = allocate_block(lower, ops + 1, sizeof(*lower->ideal_ns));
    lower->result.start_ns = allocate_block(lower, ops + 1, sizeof(*lower->result.start_ns));
    lower->result.profile = allocate_block(lower, ops, sizeof(*lower->result.profile));
    lower->result.out_busy = allocate_block(lower, ops, sizeof(*lower->result.out_busy));
    lower->result.in_busy = allocate_block(lower, ops, sizeof(*lower->result.in_busy));
    lower->result.replays = allocate_block(lower, ops, sizeof(*lower->result.replays));
}

static void allocate_state(struct lower *lower)
{
    size_t tensors = lower->trace->tensor_count;

    lower->search.tensor_stamp =
        allocate_block(lower, tensors, sizeof(*lower->search.tensor_stamp));
    lower->tensors = allocate_block(lower, tensors, sizeof(*lower->tensors));
    lower->victims.stash = allocate_block(lower, tensors, sizeof(*lower->victims.stash));
    lower->changed = allocate_block(lower, tensors, sizeof(*lower->changed));
    lower->chain.fetch = allocate_block(lower, tensors, sizeof(*lower->chain.fetch));
    lower->chain.last = allocate_block(lower, tensors, sizeof(*lower->chain.last));
    lower->chain.state = allocate_block(lower, tensors, 1);
    lower->chain.tensors = allocate_block(lower, tensors, sizeof(*lower->chain.tensors));
}

static uint32_t first_or_none(const struct trace_index *trace_index, uint32_t tensor)
{
    return trace_index->first[tensor] < trace_index->first[tensor + 1] ? trace_index->first[tensor]
                                                                       : TRACE_INDEX_NONE;
}

/* Where each gap ends, and which op made its contents. */
static void index_gaps(struct lower *lower)
{
    const struct trace_index *trace_index = lower->trace_index;
    uint32_t ops = lower->trace->op_count;

    for (uint32_t t = 0; t < lower->trace->tensor_count; t++) {
        uint32_t first = first_or_none(trace_index, t);
        uint32_t end = trace_index->first[t + 1];
        uint32_t maker = NO_OP;
        bool is_persistent = lower->trace->tensors[t].persistent;

        lower->tensors[t].rounded = trace_index->rounded[t];
        lower->tensors[t].first = trace_index->first[t];
        lower->tensors[t].end = end;
        lower->tensors[t].is_persistent = is_persistent;
        lower->tensors[t].virtual_first = TRACE_INDEX_NONE;
        for (uint32_t slot = trace_index->first[t]; slot < end; slot++) {
            bool is_last = slot + 1 == end;

            if (trace_index->role[slot] != USE_READ) {
                maker = trace_index->role[slot] == USE_WRITE ? trace_index->op[slot] : NO_OP;
            }
            lower->gap_tensor[slot] = t;
            lower->gap_start[slot] = trace_index->op[slot];
            lower->gap_maker[slot] = maker;
            lower->gap_end[slot] =
                !is_last ? trace_index->op[slot + 1] : ops + trace_index->op[first];
            lower->slot_flags[slot] = (uint8_t)((slot == first ? SLOT_FIRST : 0) |
                                                (is_last && is_persistent ? SLOT_WRAPS : 0));
            if ((is_last && !is_persistent) ||
                (!is_last && trace_index->role[slot + 1] == USE_WRITE)) {
                lower->gap_end[slot] = TRACE_INDEX_NONE;
            }
        }
    }
}

/* They are slots of the same tensors, with the contents of the last access. */
static void index_virtual_reads(struct lower *lower, const struct virtual_reads *reads)
{
    for (uint32_t k = 0; k < lower->trace->op_count; k++) {
        lower->virtual_head[k] = TRACE_INDEX_NONE;
    }
    for (uint32_t i = lower->slot_count - lower->trace->operand_count; i-- > 0;) {
        const struct virtual_read *read = &reads->list[i];
        uint32_t slot = lower->trace->operand_count + i;
        uint32_t last = lower->tensors[read->tensor].end - 1;

        ASSERT(read->op > lower->gap_start[last] && lower->gap_end[last] == TRACE_INDEX_NONE);
        lower->gap_tensor[slot] = read->tensor;
        lower->gap_start[slot] = read->op;
        lower->gap_end[slot] = TRACE_INDEX_NONE;
        lower->gap_maker[slot] = lower->gap_maker[last];
        lower->virtual_next[slot] = lower->virtual_head[read->op];
        lower->virtual_head[read->op] = slot;
    }
}

/* A replay is legal until one of its operands gets new contents. */
static void index_legality(struct lower *lower)
{
    const struct trace_index *trace_index = lower->trace_index;
    const struct trace *trace = lower->trace;
    uint32_t *cursor = lower->chain.last; /* free outside a walk */
    uint32_t *changed = lower->changed;   /* the op of its next change */

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        cursor[t] = trace_index->first[t + 1];
        changed[t] = trace->op_count;
    }
    for (uint32_t k = trace->op_count; k-- > 0;) {
        const struct trace_op *op = &trace->ops[k];
        const uint32_t *operands = trace->operands + op->first;

        lower->until[k] = trace->op_count;
        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t t = operands[i];

            lower->slot_of[op->first + i] = --cursor[t];
            lower->until[k] = changed[t] < lower->until[k] ? changed[t] : lower->until[k];
            if (lower->is_frugal && !trace->tensors[t].managed && !trace->tensors[t].persistent) {
                lower->until[k] = 0;
            }
        }
        for (uint32_t i = op->read_count; i < trace_operand_count(op); i++) {
            changed[operands[i]] = k;
        }
    }
}

capu_status lower_create(const struct trace_index *trace_index, const struct machine *machine,
                         const struct virtual_reads *reads, struct lower **out)
{
    struct lower *lower = calloc(1, sizeof(*lower));
    capu_status status;

    if (lower == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    lower->trace_index = trace_index;
    lower->trace = trace_index->trace;
    lower->slot_count = lower->trace->operand_count + (reads != NULL ? reads->count : 0);
    status = clock_init(&lower->clock, trace_index->trace, machine);
    if (status == CAPU_OK) {
        status = segment_tree_init(&lower->tree, trace_index->trace->op_count + 1);
    }
    lower->has_failed = !bits_init(&lower->due.ops, (size_t)lower->trace->op_count + 1);
    allocate_index(lower);
    allocate_state(lower);
    if (status != CAPU_OK || lower->has_failed) {
        lower_destroy(lower);
        return CAPU_NO_HOST_MEMORY;
    }
    index_gaps(lower);
    lower->is_unconditional = reads != NULL && reads->is_unconditional;
    index_virtual_reads(lower, reads);
    index_legality(lower);
    for (uint32_t k = 0; k < trace_index->trace->op_count; k++) {
        lower->ideal_ns[k + 1] = lower->ideal_ns[k] + trace_index->trace->ops[k].ns;
    }
    *out = lower;
    return CAPU_OK;
}

void lower_set_frugal(struct lower *lower, bool is_frugal)
{
    if (lower->is_frugal != is_frugal) {
        lower->is_frugal = is_frugal;
        index_legality(lower);
        memset(lower->droppable, 0, lower->trace->operand_count);
    }
}

bool lower_is_frugal(const struct lower *lower)
{
    return lower->is_frugal;
}

void lower_use_virtual_reads(struct lower *lower, bool has_virtual)
{
    lower->has_virtual = has_virtual;
    for (uint32_t slot = lower->slot_count; slot-- > lower->trace->operand_count;) {
        struct lower_tensor *state = &lower->tensors[lower->gap_tensor[slot]];
        uint32_t before = slot > lower->trace->operand_count &&
                                  lower->gap_tensor[slot - 1] == lower->gap_tensor[slot]
                              ? slot - 1
                              : state->end - 1;

        state->virtual_first = has_virtual ? slot : TRACE_INDEX_NONE;
        lower->gap_end[before] = has_virtual ? lower->gap_start[slot] : TRACE_INDEX_NONE;
    }
}

void lower_destroy(struct lower *lower)
{
    if (lower == NULL) {
        return;
    }
    for (uint32_t i = 0; i < lower->block_count; i++) {
        free(lower->blocks[i]);
    }
    bits_finish(&lower->due.ops);
    free(lower->victims.heap);
    free(lower->copies.out.list);
    free(lower->copies.in.list);
    free(lower->copies.draining.list);
    clock_finish(&lower->clock);
    segment_tree_finish(&lower->tree);
    free(lower);
}

const struct lower_result *lower_result_of(const struct lower *lower)
{
    return &lower->result;
}

uint64_t lower_work(const struct lower *lower)
{
    return lower->work;
}

const uint8_t *lower_forced(const struct lower *lower)
{
    return lower->forced;
}

void lower_settle_returns(const struct lower *lower, uint8_t *decisions)
{
    for (uint32_t t = 0; t < lower->trace->tensor_count; t++) {
        const struct lower_tensor *state = &lower->tensors[t];

        if (state->starts_on_host && decisions[state->end - 1] == DECIDE_RETURN) {
            decisions[state->end - 1] = DECIDE_SWAP;
        }
    }
}

uint32_t lower_gap_count(const struct lower *lower)
{
    return lower->slot_count;
}

uint32_t lower_gap_start(const struct lower *lower, uint32_t gap)
{
    ASSERT(gap < lower->slot_count);
    return lower->gap_start[gap];
}

uint32_t lower_gap_rank(const struct lower *lower, uint32_t gap)
{
    const struct lower_tensor *state;

    ASSERT(gap < lower_gap_count(lower));
    state = &lower->tensors[lower->gap_tensor[gap]];
    return lower_is_virtual(lower, gap) ? state->end - state->first + gap - state->virtual_first
                                        : gap - state->first;
}

bool lower_gap_is_virtual(const struct lower *lower, uint32_t gap)
{
    ASSERT(gap < lower_gap_count(lower));
    return lower->gap_end[gap] != TRACE_INDEX_NONE && lower_ends_virtually(lower, gap);
}

bool lower_gap_is_idle(const struct lower *lower, uint32_t gap)
{
    return lower_gap_is_virtual(lower, gap) &&
           (lower->means[gap] == DECIDE_DROP ||
            (lower_is_virtual(lower, gap) && !lower->reached[gap]));
}

uint32_t lower_gap_end(const struct lower *lower, uint32_t gap)
{
    ASSERT(gap < lower->slot_count);
    return lower->gap_end[gap];
}

uint32_t lower_gap_tensor(const struct lower *lower, uint32_t gap)
{
    ASSERT(gap < lower->slot_count);
    return lower->gap_tensor[gap];
}

/* Removes actions on transient tensors that neither an access nor a replay follows: a tensor whose
   last use is over is released by itself. */
static void settle_actions(struct lower *lower)
{
    const struct plan *plan = lower->plan;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < plan->action_count; i++) {
        struct plan_action action = plan->actions[i];

        if (action.kind != ACTION_RECOMPUTE) {
            const struct lower_tensor *state = &lower->tensors[action.tensor];
            bool is_before = action.kind == ACTION_PREFETCH; /* the others come after their op */

            /* last_replay is the op after the replay, plus one. */
            if (!state->is_persistent &&
                action.point >= lower->gap_start[state->end - 1] + is_before &&
                state->last_replay <= action.point + !is_before) {
                continue;
            }
        }
        plan->actions[kept++] = action;
    }
    lower->plan->action_count = kept;
}

capu_status lower_run(struct lower *lower, const uint8_t *decisions,
                      const struct lower_options *options, struct plan *plan)
{
    capu_status status = CAPU_OK;

    ASSERT(decisions != NULL);
    lower->decisions = decisions;
    lower->options = *options;
    if (options->estimate_ns == NULL) {
        lower->options.estimate_ns = lower->ideal_ns;
    }
    lower->plan = plan;
    for (uint32_t t = 0; t < lower->trace->tensor_count; t++) {
        lower->tensors[t].starts_on_host = false;
    }
    memset(lower->no_drop, 0, lower->slot_count);
    for (uint32_t walk = 0; walk < WALKS_MAX; walk++) {
        if (walk >= WALKS_WITH_DROPS) {
            memset(lower->no_drop, 1, lower->slot_count);
        }
        for (uint32_t t = 0; walk >= WALKS_WITH_RESIDENTS && t < lower->trace->tensor_count; t++) {
            lower->tensors[t].starts_on_host |=
                lower->trace->tensors[t].persistent && lower->trace->tensors[t].managed &&
                first_or_none(lower->trace_index, t) != TRACE_INDEX_NONE;
        }
        lower->must_restart = false;
        plan_clear(plan);
        status = lower_walk(lower);
        if (status != CAPU_OK || !lower->must_restart) {
            break;
        }
    }
    if (status == CAPU_OK) {
        status = lower->must_restart ? CAPU_OVER_BUDGET : CAPU_OK;
    }
    settle_actions(lower);
    return status;
}
