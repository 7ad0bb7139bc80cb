/* From a call of the program to the device, see issue.h. */
#include "runtime/issue/issue.h"

#include "runtime/context/failure.h"
#include "runtime/follow/executor.h"
#include "runtime/guide/enqueue.h"
#include "runtime/issue/operands.h"
#include "runtime/issue/settle.h"
#include "runtime/issue/whole.h"
#include "runtime/strict/strict.h"
#include "runtime/strict/strict_again.h"
#include "runtime/strict/strict_watch.h"

#include <string.h>

/* Whether the caller's code does the work: that may do what it does not say. */
static bool is_callers(enum call_kind kind)
{
    return kind == CALL_RUN || kind == CALL_ACCESS;
}

/* The bytes of an operand, if it has a role and lies in tensors; 0 if not. */
static inline uint64_t valid_bytes(const capu_context *context, const capu_operand *operand)
{
    const unsigned char *begin = operand->address;
    const struct tensor *tensor = tensors_find(&context->memory.tensors, begin);
    uint64_t room;

    if (tensor == NULL || operand->role < CAPU_READ || operand->role > CAPU_WRITE_DISCARD ||
        operand->reserved != 0) {
        return 0;
    }
    room = (uint64_t)(tensor_end(tensor) - begin);
    while (operand->bytes > room && tensor->next != NULL) {
        tensor = tensor->next;
        room = (uint64_t)(tensor_end(tensor) - begin);
    }
    return operand->bytes == 0 ? room : operand->bytes <= room ? operand->bytes : 0;
}

/* Off mode without records: checks what a look-up finds out, and clears what write-cleared asks
   for. Which contents are defined is not known. */
static capu_status begin_untracked(capu_context *context, const struct call *call)
{
    capu_status status = CAPU_OK;
    bool clears = false;

    for (size_t i = 0; i < call->operand_count; i++) {
        if (valid_bytes(context, &call->operands[i]) == 0) {
            return operands_check(context, call);
        }
        clears |= call->operands[i].role == CAPU_WRITE_CLEARED;
    }
    for (size_t i = 0; clears && i < call->operand_count && status == CAPU_OK; i++) {
        const capu_operand *operand = &call->operands[i];

        if (operand->role == CAPU_WRITE_CLEARED) {
            status =
                device_fill(context->lanes.device, context->lanes.compute.stream,
                            (void *)(uintptr_t)operand->address, 0, valid_bytes(context, operand));
        }
    }
    return failure_check(&context->failure, status, "clearing an operand");
}

static inline capu_status begin(capu_context *context, const struct call *call, bool *is_planned)
{
    capu_status status;

    *is_planned = false;
    if (!context->settings.is_tracking) {
        return begin_untracked(context, call);
    }
    status = operands_begin(context, call, is_planned);
    if (status == CAPU_OK && strict_is_on(&context->settings) && is_callers(call->kind)) {
        status = strict_watch_begin(&context->strict, &context->op);
        if (status != CAPU_OK) {
            operands_abort(context, *is_planned, false);
        }
    }
    return status;
}

/* `op`: of CALL_RUN; its arguments are in staging memory. */
static inline capu_status end(capu_context *context, enum call_kind kind, bool is_planned,
                              capu_status status, const capu_op *op, const void *arguments)
{
    bool is_watched = strict_is_on(&context->settings) && is_callers(kind);

    if (is_watched) {
        strict_watch_end(&context->strict, &context->op);
        if (kind == CALL_RUN && status == CAPU_OK) {
            status = strict_again_run(&context->strict, &context->op, arguments, op->duration_ns);
        }
    }
    if (context->settings.is_tracking && status == CAPU_OK) {
        status = operands_end(context, is_planned);
    } else if (context->settings.is_tracking) {
        /* A function that refused has written nothing; a transfer may have, in part. */
        operands_abort(context, is_planned, !is_callers(kind));
    }
    /* The op has run, and its record is complete. */
    if (is_watched) {
        status = strict_watch_report(&context->strict, &context->op, status);
    }
    return status != CAPU_OK ? status : settle_call(context);
}

capu_status issue_begin(capu_context *context, const struct call *call, bool *is_planned)
{
    return begin(context, call, is_planned);
}

capu_status issue_end(capu_context *context, enum call_kind kind, bool is_planned,
                      capu_status status)
{
    return end(context, kind, is_planned, status, NULL, NULL);
}

/* Argument bytes are the library's own from here on: replays read them again. */
static capu_status stage_arguments(capu_context *context, const capu_op *op, void **arguments)
{
    capu_status status = enqueue_stage(&context->guided, op->argument_bytes, arguments);

    if (status == CAPU_OK) {
        memcpy(*arguments, op->arguments, op->argument_bytes);
    }
    return status;
}

capu_status issue_op(capu_context *context, const struct call *call, const capu_op *op)
{
    void *arguments = NULL;
    bool is_planned;
    capu_status status = begin(context, call, &is_planned);

    if (status != CAPU_OK) {
        return status;
    }
    if (op->argument_bytes > 0) {
        status = stage_arguments(context, op, &arguments);
    }
    if (status == CAPU_OK && is_planned) {
        executor_note_run(&context->following, (struct bound_op){.arguments = arguments,
                                                                 .duration_ns = op->duration_ns});
    }
    if (status == CAPU_OK) {
        status = enqueue_op(&context->guided, call, arguments, op->duration_ns);
    }
    return end(context, CALL_RUN, is_planned, status, op, arguments);
}

capu_status issue_transfer(capu_context *context, const struct call *call, struct host_side host)
{
    bool is_planned;
    capu_status status = begin(context, call, &is_planned);

    if (status != CAPU_OK) {
        return status;
    }
    if (host.kept != NULL && !uploads_are_there(&context->residency.uploads)) {
        /* What the upload has evicted took that memory. The guide, if any, has been left by then.
         */
        host.kept = NULL;
        context->op.call.is_replayable = false;
    }
    if (call->kind == CALL_UPLOAD && context->lanes.capture.is_open) {
        status = failure_check(
            &context->failure,
            capture_upload(&context->lanes,
                           (unsigned char *)(uintptr_t)call->operands[0].address + host.offset,
                           host.bytes, &host.kept),
            "taking memory for a graph");
    }
    if (is_planned) {
        executor_note_run(&context->following,
                          (struct bound_op){.kept = host.kept, .kept_bytes = host.bytes});
    }
    if (status == CAPU_OK) {
        status = enqueue_transfer(&context->guided, call, host);
    }
    return end(context, call->kind, is_planned, status, NULL, NULL);
}
