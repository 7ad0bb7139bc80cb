/* Running an op of a plan again, see replay.h. */
#include "runtime/follow/replay.h"

#include "base/assert.h"
#include "runtime/context/failure.h"
#include "runtime/context/internal.h"
#include "runtime/guide/enqueue.h"
#include "runtime/residency/contents.h"
#include "runtime/residency/victims.h"
#include "runtime/strict/strict.h"
#include "runtime/strict/strict_again.h"
#include "runtime/strict/strict_watch.h"
#include "runtime/tensor/order.h"

static capu_status clear_ranges(capu_context *context, const struct guide *guide,
                                const struct guide_op *op)
{
    capu_status status = strict_poison_replay(&context->strict, guide, op);

    for (uint32_t i = 0; i < op->cleared.count && status == CAPU_OK; i++) {
        const struct record_range *range = &guide->cleared[op->cleared.first + i];

        status = device_fill(context->lanes.device, context->lanes.compute.stream, range->address,
                             0, range->bytes);
    }
    return status;
}

/* The op's work once more, cleared ranges first. */
static capu_status enqueue(capu_context *context, const struct guide *guide, uint32_t number)
{
    const struct guide_op *op = &guide->ops[number];
    capu_status status =
        failure_check(&context->failure, clear_ranges(context, guide, op), op->call.name);

    status = status == CAPU_OK ? strict_watch_replay_begin(&context->strict, guide, op) : status;
    if (status == CAPU_OK) {
        capu_status breach;

        status = enqueue_replay(&context->guided, guide, number);
        breach = strict_watch_replay_end(&context->strict, op);
        breach = breach == CAPU_OK ? strict_again_check(&context->strict, guide, op) : breach;
        status = status == CAPU_OK ? breach : status;
    }
    return status;
}

/* After a replay that failed when something had been enqueued: its outputs are lost, and owed if
   they were there. A small tensor that was cleared cannot be lost: it becomes undefined, and
   replays that read it do not run. */
static void forget_outputs(capu_context *context, const struct guide *guide,
                           const struct guide_op *op)
{
    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        struct tensor *tensor = context->guided.binding.tensors[access->tensor].tensor;

        if (access->role != CAPU_READ && tensor != NULL) {
            tensor_state_spoiled(tensor);
            victims_touch(&context->residency, tensor);
        }
    }
    for (uint32_t i = 0; i < op->cleared.count; i++) {
        const struct record_range *range = &guide->cleared[op->cleared.first + i];
        struct tensor *tensor = tensors_find(&context->memory.tensors, range->address);

        if (tensor != NULL && !tensor_is_managed(tensor)) {
            tensor->version++;
            contents_forget(&context->residency, tensor);
        }
    }
}

/* Updates the tensors and the record after a replay between these marks. */
static void settle(capu_context *context, const struct guide *guide, uint32_t number,
                   struct lane_position start, struct lane_position end)
{
    const struct guide_op *op = &guide->ops[number];

    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        struct tensor *tensor = context->guided.binding.tensors[access->tensor].tensor;

        if (tensor == NULL) {
            continue;
        }
        order_used(tensor, end);
        if (access->role != CAPU_READ) {
            /* If the program has overwritten it since, what the replay made does not count. */
            tensor->written = end;
            tensor_state_replayed(tensor,
                                  tensor_is_mapped(tensor) &&
                                      tensor->version ==
                                          context->guided.binding.versions[op->accesses.first + i]);
            victims_touch(&context->residency, tensor);
        }
    }
    tracker_replay(&context->records, op->call.name, number, start, end);
}

static bool has_operands(const capu_context *context, const struct guide *guide,
                         const struct guide_op *op)
{
    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        const struct tensor *tensor = context->guided.binding.tensors[access->tensor].tensor;

        if (tensor != NULL && !tensor_is_mapped(tensor)) {
            return false;
        }
    }
    return true;
}

capu_status replay_run(capu_context *context, const struct guide *guide, uint32_t number)
{
    const struct guide_op *op = &guide->ops[number];
    struct lane_position start;
    struct lane_position end;
    bool has_written = false;
    capu_status status;

    ASSERT(number < guide->op_count);
    ASSERT_INTERNAL(has_operands(context, guide, op));
    status = failure_check(&context->failure, tracker_mark_begin(&context->records, &start),
                           "marking a replay");
    if (status == CAPU_OK) {
        has_written = op->cleared.count > 0 || strict_is_on(&context->settings);
        status = enqueue(context, guide, number);
    }
    if (status == CAPU_OK) {
        has_written = true;
        if (tracker_mark_end(&context->records, &end) != CAPU_OK) {
            /* The replay runs all the same. Once it has completed, its start can serve as its end.
             */
            capture_give_up(&context->lanes, "the end of a replay cannot be marked");
            status = failure_check(&context->failure, lane_synchronize(&context->lanes.compute),
                                   "a replay");
            end = start;
        }
    }
    if (status != CAPU_OK) {
        lanes_quiesce(&context->lanes, &context->lanes.compute);
        if (has_written) {
            forget_outputs(context, guide, op);
        }
        return status;
    }
    settle(context, guide, number, start, end);
    return CAPU_OK;
}
