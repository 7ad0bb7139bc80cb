/* Running an op of a plan again, see replay.h. */
#include "runtime/follow/replay.h"

#include "base/assert.h"
#include "runtime/context/failure.h"
#include "runtime/follow/following.h"
#include "runtime/guide/enqueue.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/strict/strict.h"
#include "runtime/tensor/order.h"

static capu_status clear_ranges(struct following *following, const struct guide *guide,
                                const struct guide_op *op)
{
    capu_status status = strict_poison_replay(following->strict, guide, op);

    for (uint32_t i = 0; i < op->cleared.count && status == CAPU_OK; i++) {
        const struct record_range *range = &guide->cleared[op->cleared.first + i];

        status = device_fill(following->lanes->device, following->lanes->compute.stream,
                             range->address, 0, range->bytes);
    }
    return status;
}

/* The op's work once more, cleared ranges first. */
static capu_status enqueue(struct following *following, const struct guide *guide, uint32_t number)
{
    const struct guide_op *op = &guide->ops[number];
    capu_status status =
        failure_check(following->failure, clear_ranges(following, guide, op), op->call.name);

    status = status == CAPU_OK ? strict_watch_replay_begin(following->strict, guide, op) : status;
    if (status == CAPU_OK) {
        capu_status breach;

        status = enqueue_replay(following->guided, guide, number);
        breach = strict_watch_replay_end(following->strict, op);
        status = status == CAPU_OK ? breach : status;
        status = status == CAPU_OK ? strict_again_check(following->strict, guide, op) : status;
    }
    return status;
}

/* After a replay that failed when something had been enqueued: its outputs are lost, and owed if
   they were there. A small tensor that was cleared cannot be lost: it becomes undefined, and
   replays that read it do not run. */
static void forget_outputs(struct following *following, const struct guide *guide,
                           const struct guide_op *op)
{
    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        struct tensor *tensor = following->guided->binding.tensors[access->tensor].tensor;

        if (access->role != CAPU_READ && tensor != NULL) {
            tensor_state_spoiled(tensor);
            victims_touch(following->residency, tensor);
        }
    }
    for (uint32_t i = 0; i < op->cleared.count; i++) {
        const struct record_range *range = &guide->cleared[op->cleared.first + i];
        struct tensor *tensor = tensors_find(&following->memory->tensors, range->address);

        if (tensor != NULL && !tensor_is_managed(tensor)) {
            tensor->version++;
            contents_forget(following->residency, tensor);
        }
    }
}

/* Updates the tensors and the record after a replay between these marks. */
static void settle(struct following *following, const struct guide *guide, uint32_t number,
                   struct lane_position start, struct lane_position end)
{
    const struct guide_op *op = &guide->ops[number];

    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        struct tensor *tensor = following->guided->binding.tensors[access->tensor].tensor;

        if (tensor == NULL) {
            continue;
        }
        order_used(tensor, end);
        if (access->role != CAPU_READ) {
            /* If the program has overwritten it since, what the replay made does not count. */
            tensor->written = end;
            tensor_state_replayed(
                tensor,
                tensor_is_mapped(tensor) &&
                    tensor->version == following->guided->binding.versions[op->accesses.first + i]);
            victims_touch(following->residency, tensor);
        }
    }
    tracker_replay(following->records, op->call.name, number, start, end);
}

static bool has_operands(const struct following *following, const struct guide *guide,
                         const struct guide_op *op)
{
    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        const struct tensor *tensor = following->guided->binding.tensors[access->tensor].tensor;

        if (tensor != NULL && !tensor_is_mapped(tensor)) {
            return false;
        }
    }
    return true;
}

capu_status replay_run(struct following *following, const struct guide *guide, uint32_t number)
{
    const struct guide_op *op = &guide->ops[number];
    struct lane_position start;
    struct lane_position end;
    bool has_written = false;
    capu_status status;

    ASSERT(number < guide->op_count);
    ASSERT_INTERNAL(has_operands(following, guide, op));
    status = failure_check(following->failure, tracker_mark_begin(following->records, &start),
                           "marking a replay");
    if (status == CAPU_OK) {
        has_written = op->cleared.count > 0 || strict_is_on(following->settings);
        status = enqueue(following, guide, number);
    }
    if (status == CAPU_OK) {
        has_written = true;
        if (tracker_mark_end(following->records, &end) != CAPU_OK) {
            /* The replay runs all the same. Once it has completed, its start can serve as its end.
             */
            capture_give_up(following->lanes, "the end of a replay cannot be marked");
            status = failure_check(following->failure, lane_synchronize(&following->lanes->compute),
                                   "a replay");
            end = start;
        }
    }
    if (status != CAPU_OK) {
        lanes_quiesce(following->lanes, &following->lanes->compute);
        if (has_written) {
            forget_outputs(following, guide, op);
        }
        return status;
    }
    settle(following, guide, number, start, end);
    return CAPU_OK;
}
