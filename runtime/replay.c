/* Running an op of a plan again, see replay.h. */
#include "runtime/replay.h"

#include "runtime/contents.h"
#include "runtime/failure.h"
#include "runtime/internal.h"
#include "runtime/strict.h"
#include "runtime/victims.h"

static capu_status clear_ranges(capu_context *context, const struct guide *guide,
                                const struct guide_op *op)
{
    capu_status status = strict_poison_replay(context, guide, op);

    for (uint32_t i = 0; i < op->cleared.count && status == CAPU_OK; i++) {
        const struct record_range *range = &guide->cleared[op->cleared.first + i];

        status =
            device_fill(context->device, context->compute.stream, range->address, 0, range->bytes);
    }
    return status;
}

/* The op's work once more, cleared ranges first. */
static capu_status enqueue(capu_context *context, const struct guide *guide, uint32_t number)
{
    const struct guide_op *op = &guide->ops[number];
    const struct bound_op *bound = &context->binding.ops[number];
    capu_stream stream = context->compute.stream;
    const capu_operand *operands = op->call.operands;
    capu_status answer = CAPU_OK;
    struct device_work work = {
        .name = op->call.name,
        .run = op->call.replay != NULL ? op->call.replay : op->call.run,
        .arguments = bound->arguments,
        .duration_ns = bound->duration_ns,
        .answer = &answer,
    };
    capu_status status = clear_ranges(context, guide, op);

    if (status == CAPU_OK) {
        switch (op->call.kind) {
        case CALL_ZERO:
        case CALL_FILL:
            status = device_fill(context->device, stream, (void *)(uintptr_t)operands[0].address, 0,
                                 operands[0].bytes);
            break;
        case CALL_COPY:
            status =
                device_copy_within(context->device, stream, (void *)(uintptr_t)operands[1].address,
                                   operands[0].address, operands[0].bytes);
            break;
        default:
            status = device_run(context->device, stream, &work);
            break;
        }
    }
    if (status == CAPU_OP_FAILED && device_failure(context->device, NULL, 0) == CAPU_OK) {
        return failure_set(context, CAPU_DEVICE_FAILED,
                           "op '%s' could not be enqueued again: its run function returned %s",
                           op->call.name, capu_status_name(answer));
    }
    return failure_check(context, status, op->call.name);
}

/* After a replay that failed behind its first work: what it would have made is not there, and owed
   where it was. A small tensor that was cleared cannot be noted as lost: it has no contents, and
   replays that read it are not run again. */
static void forget_outputs(capu_context *context, const struct guide *guide,
                           const struct guide_op *op)
{
    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        struct tensor *tensor = context->binding.tensors[access->tensor].tensor;

        if (access->role != CAPU_READ && tensor != NULL) {
            tensor_state_spoiled(tensor);
            victims_touch(context, tensor);
        }
    }
    for (uint32_t i = 0; i < op->cleared.count; i++) {
        const struct record_range *range = &guide->cleared[op->cleared.first + i];
        struct tensor *tensor = tensors_find(&context->tensors, range->address);

        if (tensor != NULL && !tensor_is_managed(tensor)) {
            tensor->version++;
            contents_forget(context, tensor);
        }
    }
}

/* What a replay between these marks leaves behind. */
static void settle(capu_context *context, const struct guide *guide, const struct guide_op *op,
                   struct lane_position start, struct lane_position end)
{
    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        struct tensor *tensor = context->binding.tensors[access->tensor].tensor;

        if (tensor == NULL) {
            continue;
        }
        tensor->used = end;
        if (access->role != CAPU_READ) {
            /* Where it has been overwritten since, what the replay made is no contents. */
            tensor->written = end;
            tensor_state_replayed(
                tensor, tensor_is_mapped(tensor) &&
                            tensor->version == context->binding.versions[op->accesses.first + i]);
            victims_touch(context, tensor);
        }
    }
    tracker_replay(context, op->call.name, start, end);
}

/* What a replay reads and writes, for profilers. */
static uint64_t moved_bytes(const struct guide *guide, const struct guide_op *op)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];

        bytes += marks_traffic(access->role, guide->tensors[access->tensor].bytes);
    }
    return bytes;
}

capu_status replay_run(capu_context *context, const struct guide *guide, uint32_t number)
{
    const struct guide_op *op = &guide->ops[number];
    struct lane_position start;
    struct lane_position end;
    bool has_written = false;
    capu_status status =
        failure_check(context, tracker_mark_begin(context, &start), "marking a replay");

    if (status == CAPU_OK) {
        has_written = op->cleared.count > 0 || strict_is_on(context);
        marks_begin(MARK_REPLAY, op->call.name, marks_are_on() ? moved_bytes(guide, op) : 0);
        status = enqueue(context, guide, number);
        marks_end();
    }
    if (status == CAPU_OK) {
        has_written = true;
        if (tracker_mark_end(context, &end) != CAPU_OK) {
            /* It is made all the same: once it is past, its start will do for its end. */
            status = failure_check(context, lane_synchronize(&context->compute), "a replay");
            end = start;
        }
    }
    if (status != CAPU_OK) {
        failure_quiesce(context, &context->compute);
        if (has_written) {
            forget_outputs(context, guide, op);
        }
        return status;
    }
    settle(context, guide, op, start, end);
    return CAPU_OK;
}
