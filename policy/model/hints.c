/* Hints that a plan does not follow, see hints.h. */
#include "policy/model/hints.h"

#include <stdio.h>

/* An op between the two that writes the tensor; TRACE_INDEX_NONE: there is none. */
static uint32_t find_writer(const struct trace_index *trace_index, uint32_t tensor, uint32_t after,
                            uint32_t before)
{
    for (uint32_t i = trace_index->first[tensor]; i < trace_index->first[tensor + 1]; i++) {
        uint32_t op = trace_index->op[i];

        if (op > after && op < before && trace_index->role[i] != USE_READ) {
            return op;
        }
    }
    return TRACE_INDEX_NONE;
}

/* Why the op cannot give a tensor back that is read at `reader`. */
static struct hint_reason check_writer(const struct trace_index *trace_index, uint32_t writer,
                                       uint32_t reader)
{
    const struct trace *trace = trace_index->trace;
    const struct trace_op *op = &trace->ops[writer];

    if (!op->replayable) {
        return (struct hint_reason){OBSTACLE_NOT_REPLAYABLE, writer};
    }
    for (uint32_t i = 0; i < op->read_count; i++) {
        uint32_t other = find_writer(trace_index, trace->operands[op->first + i], writer, reader);

        if (other != TRACE_INDEX_NONE) {
            return (struct hint_reason){OBSTACLE_OVERWRITTEN, other};
        }
    }
    return (struct hint_reason){OBSTACLE_COST, TRACE_INDEX_NONE};
}

struct hint_reason hint_reason_of(const struct trace_index *trace_index, uint32_t tensor)
{
    const struct trace_tensor *description = &trace_index->trace->tensors[tensor];
    struct hint_reason reason = {OBSTACLE_COST, TRACE_INDEX_NONE};
    uint32_t writer = TRACE_INDEX_NONE;

    if (description->hint != CAPU_HINT_RECOMPUTE) {
        return reason;
    }
    if (description->persistent) {
        return (struct hint_reason){OBSTACLE_PERSISTENT, TRACE_INDEX_NONE};
    }
    for (uint32_t i = trace_index->first[tensor]; i < trace_index->first[tensor + 1]; i++) {
        uint32_t op = trace_index->op[i];

        if (trace_index->role[i] != USE_WRITE && writer != TRACE_INDEX_NONE && op > writer + 1) {
            reason = check_writer(trace_index, writer, op);
        }
        if (reason.obstacle != OBSTACLE_COST) {
            return reason;
        }
        writer = trace_index->role[i] != USE_READ ? op : writer;
    }
    return reason;
}

void hint_reason_text(capu_hint hint, enum hint_obstacle obstacle, const char *op, char *text,
                      size_t bytes)
{
    switch (obstacle) {
    case OBSTACLE_PERSISTENT:
        snprintf(text, bytes, "its contents outlive the iteration");
        break;
    case OBSTACLE_NOT_REPLAYABLE:
        snprintf(text, bytes, "op '%s', which computes it, is not replayable", op);
        break;
    case OBSTACLE_OVERWRITTEN:
        snprintf(text, bytes, "op '%s' overwrites what it is computed from", op);
        break;
    default:
        snprintf(text, bytes,
                 hint == CAPU_HINT_KEEP
                     ? "the budget has no room for it all the time"
                     : "the best plan that was found follows other decisions, since they take less "
                       "time or fewer pages");
        break;
    }
}

/* Whether the tensor's contents are needed again after this op. */
static bool is_needed_after(const struct trace_index *trace_index, uint32_t tensor, uint32_t op)
{
    for (uint32_t i = trace_index->first[tensor]; i < trace_index->first[tensor + 1]; i++) {
        if (trace_index->op[i] > op) {
            return trace_index->role[i] != USE_WRITE;
        }
    }
    return false;
}

bool hint_is_ignored(const struct trace_index *trace_index, const struct plan *plan,
                     uint32_t tensor)
{
    capu_hint hint = (capu_hint)trace_index->trace->tensors[tensor].hint;

    for (uint32_t i = 0; hint != CAPU_HINT_NONE && i < plan->action_count; i++) {
        const struct plan_action *action = &plan->actions[i];
        bool is_copy = action->kind == ACTION_EVICT || action->kind == ACTION_SAVE;

        if (action->kind == ACTION_RECOMPUTE || action->tensor != tensor) {
            continue;
        }
        if ((is_copy && hint != CAPU_HINT_SWAP) ||
            (action->kind == ACTION_DROP && hint != CAPU_HINT_RECOMPUTE &&
             is_needed_after(trace_index, tensor, action->point))) {
            return true;
        }
    }
    return false;
}
