/*
 * The two queues of a walk. Victims: a heap of the resident tensors in the order in which they are
 * to be evicted. Due copies: per op, a list of the tensors on the host that it needs, and a set of
 * the ops whose list is not empty.
 *
 * A tensor whose key changes is pushed again; its older entry becomes stale and is skipped when it
 * is popped. That is cheaper than finding the entry in the heap.
 */
#include "base/array.h"
#include "base/assert.h"
#include "base/heap.h"
#include "policy/lower/lower_state.h"

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
    if (!array_reserve(&lower->victims, &lower->victim_capacity, (size_t)lower->victim_count + 1,
                       sizeof(*lower->victims))) {
        lower_fail(lower, CAPU_NO_HOST_MEMORY);
        return;
    }
    heap_push(lower->victims, lower->victim_count++, &victim, victim_order(lower));
}

struct victim lower_heap_pop(struct lower *lower)
{
    struct victim top;

    ASSERT(lower->victim_count > 0);
    top = lower->victims[0];
    heap_pop(lower->victims, lower->victim_count--, victim_order(lower));
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
        lower->due_head[op] = next;
    } else {
        lower->tensors[before].due_next = next;
    }
    if (next != NO_OP) {
        lower->tensors[next].due_prev = before;
    }
    if (lower->due_head[op] == NO_OP) {
        bits_remove(&lower->due_ops, op);
    }
}

/* Those that return before the iteration ends are many: they are in the order of their times. */
static uint32_t due_before(const struct lower *lower, uint32_t op, int64_t latest)
{
    uint32_t before = NO_OP;

    for (uint32_t t = lower->due_head[op];
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
        state->due_prev == NO_OP ? &lower->due_head[op] : &lower->tensors[state->due_prev].due_next;
    state->due_next = *link;
    if (state->due_next != NO_OP) {
        lower->tensors[state->due_next].due_prev = tensor;
    }
    *link = tensor;
    bits_add(&lower->due_ops, op);
}

uint32_t lower_due_next_op(const struct lower *lower, uint32_t from)
{
    size_t op = bits_next(&lower->due_ops, from);

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
