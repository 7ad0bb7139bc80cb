/* capu_run, accesses of the caller's own launches, and segments: see capuchin/op.h. */
#include "runtime/executor.h"
#include "runtime/failure.h"
#include "runtime/internal.h"
#include "runtime/lookup.h"
#include "runtime/settle.h"
#include "runtime/strict.h"

#include <string.h>

/* Copies a caller's op, whatever its version, and checks it. */
static capu_status read_op(capu_context *context, const capu_op *from, bool needs_run, capu_op *op)
{
    if (from == NULL) {
        return failure_set(context, CAPU_INVALID, "no op was given");
    }
    if (!struct_read(op, sizeof(*op), from, from->size)) {
        return failure_set(context, CAPU_WRONG_STRUCT,
                           "a capu_op of %zu bytes; this library's is %zu", from->size,
                           sizeof(*op));
    }
    if (op->name == NULL || op->name[0] == '\0') {
        return failure_set(context, CAPU_INVALID, "an op has no name");
    }
    if (needs_run && op->run == NULL) {
        return failure_set(context, CAPU_INVALID, "op '%s' has no run function", op->name);
    }
    if ((op->operand_count > 0 && op->operands == NULL) ||
        (op->argument_bytes > 0 && op->arguments == NULL)) {
        return failure_set(context, CAPU_INVALID, "op '%s' has a count but no array", op->name);
    }
    if ((op->flags & ~(uint32_t)CAPU_OP_NOT_REPLAYABLE) != 0 || op->reserved != 0) {
        return failure_set(context, CAPU_INVALID,
                           "op '%s' has unknown flags 0x%x, or reserved %u is not 0", op->name,
                           op->flags, op->reserved);
    }
    op->name = names_intern(&context->names, op->name);
    if (op->name == NULL) {
        return failure_set(context, CAPU_NO_HOST_MEMORY, "no memory for an op's name");
    }
    return CAPU_OK;
}

static struct call call_of(const capu_op *op, enum call_kind kind)
{
    return (struct call){
        .kind = kind,
        .name = op->name,
        .run = op->run,
        .replay = op->replay,
        .key = op->key,
        .is_replayable = kind == CALL_RUN && (op->flags & CAPU_OP_NOT_REPLAYABLE) == 0,
        .operands = op->operands,
        .operand_count = op->operand_count,
    };
}

/* Mode off without records: nothing but the clearing that write-cleared asks for. */
static capu_status clear_untracked(capu_context *context, const capu_op *op)
{
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < op->operand_count && status == CAPU_OK; i++) {
        const capu_operand *operand = &op->operands[i];
        uint64_t bytes = operand->bytes;

        if (operand->role != CAPU_WRITE_CLEARED) {
            continue;
        }
        if (bytes == 0) {
            struct tensor *tensor;

            status = lookup_tensor(context, operand->address, op->name, &tensor);
            if (status != CAPU_OK) {
                return status;
            }
            bytes = (uint64_t)(tensor_end(tensor) - (unsigned char *)operand->address);
        }
        status = device_fill(context->device, context->compute.stream,
                             (void *)(uintptr_t)operand->address, 0, bytes);
    }
    return failure_check(context, status, "clearing an operand");
}

/* What the op reads and writes, for profilers. Without tracking, as far as its operands say. */
static uint64_t moved_bytes(const capu_context *context, const capu_op *op)
{
    const struct operands *operands = &context->operands;
    uint64_t bytes = 0;

    for (size_t i = 0; context->is_tracking && i < operands->piece_count; i++) {
        bytes += marks_traffic(operands->pieces[i].role, operands->pieces[i].bytes);
    }
    for (size_t i = 0; !context->is_tracking && i < op->operand_count; i++) {
        bytes += marks_traffic(op->operands[i].role, op->operands[i].bytes);
    }
    return bytes;
}

static capu_status enqueue(capu_context *context, const capu_op *op)
{
    capu_status answer = CAPU_OK;
    struct device_work work = {
        .name = op->name, .run = op->run, .duration_ns = op->duration_ns, .answer = &answer};
    capu_status status;
    void *arguments = NULL;

    if (op->argument_bytes > 0) {
        status = context_stage(context, op->argument_bytes, &arguments);
        if (status != CAPU_OK) {
            return status;
        }
        memcpy(arguments, op->arguments, op->argument_bytes);
    }
    work.arguments = arguments;
    if (context->is_tracking && context->operands.is_planned) {
        executor_note_run(context, arguments, op->duration_ns);
    }
    marks_begin(MARK_OP, op->name, marks_are_on() ? moved_bytes(context, op) : 0);
    status = device_run(context->device, context->compute.stream, &work);
    marks_end();
    if (status == CAPU_OP_FAILED && device_failure(context->device, NULL, 0) == CAPU_OK) {
        /* It failed while it was enqueued and the device goes on: the op has not run. */
        return failure_set(context, CAPU_DEVICE_FAILED,
                           "op '%s' could not be enqueued: its run function returned %s", op->name,
                           capu_status_name(answer));
    }
    return failure_check(context, status, op->name);
}

/* The op has run, and all books are kept. */
static capu_status blame(capu_context *context, struct tensor *changed)
{
    if (changed == NULL) {
        return CAPU_OK;
    }
    return failure_set(context, CAPU_INVALID,
                       "op '%s' has changed '%s', which it says it only reads: it updates it, or "
                       "writes past the end of another operand",
                       context->operands.name, lookup_name(context, changed));
}

capu_status capu_run(capu_context *context, const capu_op *op)
{
    capu_status status = context_ready(context, "capu_run");
    struct tensor *changed = NULL;
    capu_op copy;

    if (status == CAPU_OK) {
        status = read_op(context, op, true, &copy);
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (context->is_tracking) {
        struct call call = call_of(&copy, CALL_RUN);

        status = operands_begin(context, &call);
    } else {
        status = clear_untracked(context, &copy);
    }
    if (status != CAPU_OK) {
        return status;
    }
    status = strict_begin(context);
    if (status == CAPU_OK) {
        status = enqueue(context, &copy);
    }
    if (status == CAPU_OK) {
        changed = strict_changed(context);
    }
    if (context->is_tracking) {
        if (status == CAPU_OK) {
            status = operands_end(context);
        } else {
            operands_abort(context, false);
        }
    }
    status = status == CAPU_OK ? blame(context, changed) : status;
    return status != CAPU_OK ? status : settle_unrecorded(context);
}

capu_status capu_access_begin(capu_context *context, const capu_op *op)
{
    capu_status status = context_ready(context, "capu_access_begin");
    capu_op copy;

    if (status == CAPU_OK) {
        status = read_op(context, op, false, &copy);
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (context->is_tracking) {
        struct call call = call_of(&copy, CALL_ACCESS);

        status = operands_begin(context, &call);
    } else {
        status = clear_untracked(context, &copy);
    }
    if (status == CAPU_OK && context->device->capabilities.runs_on_stream) {
        status = failure_check(context, lane_synchronize(&context->compute), "waiting for access");
        status = status == CAPU_OK ? strict_begin(context) : status;
        if (status != CAPU_OK && context->is_tracking) {
            operands_abort(context, false);
        }
    }
    context->in_access = status == CAPU_OK;
    return status;
}

capu_status capu_access_end(capu_context *context)
{
    capu_status status = context_usable(context);
    struct tensor *changed;

    if (status != CAPU_OK) {
        return status;
    }
    if (!context->in_access) {
        return failure_set(context, CAPU_WRONG_ORDER, "capu_access_end without capu_access_begin");
    }
    context->in_access = false;
    changed = strict_changed(context);
    status = context->is_tracking ? operands_end(context) : CAPU_OK;
    status = status == CAPU_OK ? blame(context, changed) : status;
    return status != CAPU_OK ? status : settle_unrecorded(context);
}

capu_status capu_segment_begin(capu_context *context, const char *name)
{
    capu_status status = context_ready(context, "capu_segment_begin");
    const char *interned;

    if (status != CAPU_OK) {
        return status;
    }
    if (name == NULL || name[0] == '\0') {
        return failure_set(context, CAPU_INVALID, "a segment has no name");
    }
    if (!context->in_iteration) {
        return failure_set(context, CAPU_WRONG_ORDER, "segment '%s' begins outside an iteration",
                           name);
    }
    interned = names_intern(&context->names, name);
    if (interned == NULL) {
        return failure_set(context, CAPU_NO_HOST_MEMORY, "no memory for a segment's name");
    }
    if (context->tracker.segment_depth++ == 0) {
        context->tracker.segment = interned;
    }
    return CAPU_OK;
}

capu_status capu_segment_end(capu_context *context)
{
    capu_status status = context_ready(context, "capu_segment_end");

    if (status != CAPU_OK) {
        return status;
    }
    if (context->tracker.segment_depth == 0) {
        return failure_set(context, CAPU_WRONG_ORDER,
                           "capu_segment_end without capu_segment_begin");
    }
    if (--context->tracker.segment_depth == 0) {
        context->tracker.segment = NULL;
    }
    return CAPU_OK;
}
