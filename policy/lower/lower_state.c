/*
 * The state of a lowering's walk that all of its files share: where each tensor is, what it is used
 * for next, and what is held. Below all other files of the lowering.
 */
#include "policy/lower/lower_state.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/heap.h"

#include <string.h>

void lower_fail(struct lower *lower, capu_status status)
{
    ASSERT(status != CAPU_OK);
    if (lower->status == CAPU_OK) {
        lower->status = status;
    }
}

uint32_t lower_next_stamp(struct lower *lower)
{
    if (++lower->search.stamp == 0) {
        memset(lower->search.op_stamp, 0, lower->trace->op_count * sizeof(*lower->search.op_stamp));
        memset(lower->search.tensor_stamp, 0,
               lower->trace->tensor_count * sizeof(*lower->search.tensor_stamp));
        lower->search.stamp = 1;
    }
    return lower->search.stamp;
}

/* The tensor's slot after its last access so far; TRACE_INDEX_NONE: there is none. */
static uint32_t next_slot(const struct lower *lower, uint32_t tensor)
{
    const struct lower_tensor *state = &lower->tensors[tensor];

    if (state->gap != TRACE_INDEX_NONE) {
        return lower_slot_after(lower, tensor, state->gap);
    }
    return state->first < state->end ? state->first : TRACE_INDEX_NONE;
}

uint32_t lower_next_use(const struct lower *lower, uint32_t tensor)
{
    const struct lower_tensor *state = &lower->tensors[tensor];
    uint32_t next = next_slot(lower, tensor);

    if (next != TRACE_INDEX_NONE) {
        return lower_is_virtual(lower, next) && lower->means[state->gap] == DECIDE_DROP
                   ? NO_OP
                   : lower->gap_start[next];
    }
    return state->is_persistent && state->end > state->first
               ? lower->trace->op_count + lower->trace_index->op[state->first]
               : NO_OP;
}

bool lower_can_return(const struct lower *lower, uint32_t gap)
{
    ASSERT(gap < lower->slot_count);
    return (lower->slot_flags[gap] & SLOT_WRAPS) != 0 &&
           lower->gap_start[gap] + 1 < lower->trace->op_count;
}

uint32_t lower_due_op(const struct lower *lower, uint32_t tensor)
{
    uint32_t next = lower_next_use(lower, tensor);
    uint32_t ops = lower->trace->op_count;

    return next < ops ? next : lower->tensors[tensor].returns ? ops : NO_OP;
}

bool lower_next_needs(const struct lower *lower, uint32_t tensor)
{
    const struct lower_tensor *state = &lower->tensors[tensor];
    uint32_t next = next_slot(lower, tensor);

    if (next == TRACE_INDEX_NONE) {
        return state->is_persistent;
    }
    return lower_is_virtual(lower, next) ? lower->means[state->gap] != DECIDE_DROP
                                         : lower->trace_index->role[next] != USE_WRITE;
}

void lower_set_resident(struct lower *lower, uint32_t tensor)
{
    ASSERT(!lower->tensors[tensor].is_resident);
    lower->tensors[tensor].is_resident = true;
    lower->held += lower->tensors[tensor].rounded;
}

void lower_release(struct lower *lower, uint32_t tensor, uint64_t usable_ns)
{
    /* A soft pool never runs short, so bytes that return to it need no time. */
    capu_status status = lower->options.is_soft
                             ? CAPU_OK
                             : clock_give(&lower->clock, lower->tensors[tensor].rounded, usable_ns);

    if (status != CAPU_OK) {
        lower_fail(lower, status);
    }
    ASSERT(lower->tensors[tensor].is_resident);
    ASSERT(lower->held >= lower->tensors[tensor].rounded);
    lower->tensors[tensor].is_resident = false;
    lower->held -= lower->tensors[tensor].rounded;
    lower->tensors[tensor].key = 0;
}

/* Is there room on the host for a copy of the tensor? */
bool lower_fits_host(const struct lower *lower, uint32_t tensor)
{
    return lower->tensors[tensor].has_host ||
           (lower->host_held <= lower->options.host_bytes &&
            lower->trace->tensors[tensor].bytes <= lower->options.host_bytes - lower->host_held);
}

/*
 * The two queues of a walk. Victims: a heap of the resident tensors in the order in which they are
 * to be evicted. Due copies: per op, a list of the tensors on the host that it needs, and a set of
 * the ops whose list is not empty.
 *
 * A tensor whose key changes is pushed again; its older entry becomes stale and is skipped when it
 * is popped. That is cheaper than finding the entry in the heap.
 */

static bool leaves_before(const void *left, const void *right, const void *context)
{
    const struct lower *lower = context;
    const struct victim *a = left;
    const struct victim *b = right;
    uint64_t a_bytes;
    uint64_t b_bytes;

    if (a->key != b->key) {
        return a->key > b->key;
    }
    a_bytes = lower->tensors[a->tensor].rounded;
    b_bytes = lower->tensors[b->tensor].rounded;
    return a_bytes != b_bytes ? a_bytes > b_bytes : a->tensor < b->tensor;
}

static inline struct heap_order victim_order(const struct lower *lower)
{
    return (struct heap_order){
        .element_bytes = sizeof(struct victim), .is_before = leaves_before, .context = lower};
}

void lower_heap_push(struct lower *lower, struct victim victim)
{
    if (!array_reserve(&lower->victims.heap, &lower->victims.capacity,
                       (size_t)lower->victims.count + 1, sizeof(*lower->victims.heap))) {
        lower_fail(lower, CAPU_NO_HOST_MEMORY);
        return;
    }
    heap_push(lower->victims.heap, lower->victims.count++, &victim, victim_order(lower));
}

struct victim lower_heap_pop(struct lower *lower)
{
    struct victim top;

    ASSERT(lower->victims.count > 0);
    top = lower->victims.heap[0];
    heap_pop(lower->victims.heap, lower->victims.count--, victim_order(lower));
    return top;
}

void lower_push_victim(struct lower *lower, uint32_t tensor, uint32_t now)
{
    uint64_t key;

    if (lower->tensors[tensor].rounded == 0 || lower->options.is_soft) {
        return;
    }
    key = lower->options.victims == VICTIM_LEAST_RECENT ? NO_OP - (uint64_t)now
                                                        : lower_next_use(lower, tensor);
    /* Keys start at 1, so that 0 means: not a victim. */
    lower->tensors[tensor].key = key + 1;
    lower_heap_push(lower, (struct victim){.key = key + 1, .tensor = tensor});
}

void lower_due_remove(struct lower *lower, uint32_t tensor, uint32_t op)
{
    uint32_t next = lower->tensors[tensor].due_next;
    uint32_t before = lower->tensors[tensor].due_prev;

    if (!lower->tensors[tensor].is_due) {
        return;
    }
    lower->tensors[tensor].is_due = false;
    if (before == NO_OP) {
        lower->due.head[op] = next;
    } else {
        lower->tensors[before].due_next = next;
    }
    if (next != NO_OP) {
        lower->tensors[next].due_prev = before;
    }
    if (lower->due.head[op] == NO_OP) {
        bits_remove(&lower->due.ops, op);
    }
}

/* Those that return before the iteration ends are many: they are in the order of their times. */
static uint32_t due_before(const struct lower *lower, uint32_t op, int64_t latest)
{
    uint32_t before = NO_OP;

    for (uint32_t t = lower->due.head[op];
         op == lower->trace->op_count && t != NO_OP && lower->tensors[t].due_latest < latest;
         t = lower->tensors[t].due_next) {
        before = t;
    }
    return before;
}

void lower_due_add(struct lower *lower, uint32_t tensor, uint32_t op, int64_t latest)
{
    struct lower_tensor *state = &lower->tensors[tensor];
    uint32_t *link;

    ASSERT(op <= lower->trace->op_count);
    ASSERT(!state->is_due);
    state->is_due = true;
    state->due_latest = latest;
    state->due_prev = due_before(lower, op, latest);
    link =
        state->due_prev == NO_OP ? &lower->due.head[op] : &lower->tensors[state->due_prev].due_next;
    state->due_next = *link;
    if (state->due_next != NO_OP) {
        lower->tensors[state->due_next].due_prev = tensor;
    }
    *link = tensor;
    bits_add(&lower->due.ops, op);
}

uint32_t lower_due_next_op(const struct lower *lower, uint32_t from)
{
    size_t op = bits_next(&lower->due.ops, from);

    return op == BITS_NONE ? NO_OP : (uint32_t)op;
}

/* The latest start of a fetch that was not planned. */
static int64_t unplanned_latest(const struct lower *lower, uint32_t tensor, uint32_t end)
{
    return (int64_t)lower->options.estimate_ns[end] -
           lower_spare_ns(1.5 * (double)lower->clock.in_ns[tensor]);
}

void lower_due_again(struct lower *lower, uint32_t tensor)
{
    uint32_t next = lower_due_op(lower, tensor);

    if (next != NO_OP && (next == lower->trace->op_count || lower_next_needs(lower, tensor))) {
        lower_due_add(lower, tensor, next, unplanned_latest(lower, tensor, next));
    }
}
