/*
 * The state of a lowering's walk that all of its files share: where each tensor is, what it is used
 * for next, and what is held. Below all other files of the lowering.
 */
#include "policy/lower/lower_state.h"

#include "base/assert.h"

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
    if (++lower->stamp == 0) {
        memset(lower->op_stamp, 0, lower->trace->op_count * sizeof(*lower->op_stamp));
        memset(lower->tensor_stamp, 0, lower->trace->tensor_count * sizeof(*lower->tensor_stamp));
        lower->stamp = 1;
    }
    return lower->stamp;
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
