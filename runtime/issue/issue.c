/* From a call of the program to the device, and on until its work has passed: see issue.h. */
#include "runtime/issue/issue.h"

#include "runtime/context/failure.h"
#include "runtime/follow/executor.h"
#include "runtime/guide/enqueue.h"
#include "runtime/issue/whole.h"
#include "runtime/plan/planning.h"
#include "runtime/strict/strict.h"

#include <string.h>

/*
 * Taking note of work that has passed. The record goes to planning here and not in the tracker:
 * planning leaves guides, which calls most of the room, and the room calls the tracker.
 */

/* Without iterations nothing retires the lanes' marks: do it every so many calls. */
enum { UNRECORDED_LIMIT = 4096 };

capu_status settle_records(capu_context *context)
{
    capu_status status = tracker_settle(&context->records);

    planning_review(&context->plans); /* records that were completed before a failure, too */
    return status;
}

capu_status settle_work(capu_context *context)
{
    struct lane *lanes[] = {&context->lanes.compute, &context->lanes.d2h, &context->lanes.h2d};
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]) && status == CAPU_OK; i++) {
        status = lane_synchronize(lanes[i]);
    }
    if (status != CAPU_OK) {
        return failure_check(&context->failure, status, "waiting for the device");
    }
    status = settle_records(context);
    if (status == CAPU_OK) {
        status = departures_reap(&context->residency);
    }
    if (status != CAPU_OK || context->iteration.is_open) {
        return status;
    }
    traffic_settle(&context->records);
    for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
        lane_retire((struct lane_position){.lane = lanes[i], .sequence = lanes[i]->marked});
    }
    staging_restart(&context->lanes.staging);
    context->lanes.unrecorded_ops = 0;
    return CAPU_OK;
}

/* Whether a plan may come from an iteration that ends on the device while this one, without a plan,
   is open. With wait_for_plan, plans do not depend on when that is. */
static bool is_plan_awaited(const capu_context *context)
{
    return context->plans.keeper != NULL && context->guided.active == NULL &&
           context->settings.config.wait_for_plan == 0;
}

capu_status settle_call(capu_context *context)
{
    /* The caller's own work is done: what fails here and is no loss is tried again next time. */
    if (context->iteration.is_open) {
        if (!is_plan_awaited(context)) {
            return CAPU_OK;
        }
        settle_records(context);
    } else {
        if (++context->lanes.unrecorded_ops < UNRECORDED_LIMIT) {
            return CAPU_OK;
        }
        settle_work(context);
    }
    return context->failure.lost;
}

/*
 * Issuing calls.
 */

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

    if (tensor == NULL || operand->role < CAPU_READ || operand->role > CAPU_WRITE_REST_UNDEFINED ||
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

/* Off mode without records: checks what a look-up finds out, and clears what write-rest-zero asks
   for. Which contents are defined is not known. */
static capu_status begin_untracked(capu_context *context, struct op *op)
{
    const struct call *call = &op->call;
    capu_status status = CAPU_OK;
    bool clears = false;

    for (size_t i = 0; i < call->operand_count; i++) {
        if (valid_bytes(context, &call->operands[i]) == 0) {
            return operands_check(context, op);
        }
        clears |= call->operands[i].role == CAPU_WRITE_REST_ZERO;
    }
    for (size_t i = 0; clears && i < call->operand_count && status == CAPU_OK; i++) {
        const capu_operand *operand = &call->operands[i];

        if (operand->role == CAPU_WRITE_REST_ZERO) {
            status =
                device_fill(context->lanes.device, context->lanes.compute.stream,
                            (void *)(uintptr_t)operand->address, 0, valid_bytes(context, operand));
        }
    }
    return failure_check(&context->failure, status, "clearing an operand");
}

static inline capu_status begin_tracked(capu_context *context, struct op *op)
{
    capu_status status = operands_begin(context, op);

    if (status == CAPU_OK && strict_is_on(&context->settings) && is_callers(op->call.kind)) {
        status = strict_watch_begin(&context->strict, op);
        if (status != CAPU_OK) {
            operands_abort(context, op, false);
        }
    }
    return status;
}

static inline capu_status begin_op(capu_context *context, struct op *op)
{
    capu_status status;

    op->stage = OP_UNPLANNED;
    status =
        context->settings.is_tracking ? begin_tracked(context, op) : begin_untracked(context, op);
    if (status != CAPU_OK) {
        op->stage = OP_OVER;
    }
    return status;
}

static inline capu_status end_op(capu_context *context, struct op *op, capu_status status)
{
    enum call_kind kind = op->call.kind;
    bool is_watched = strict_is_on(&context->settings) && is_callers(kind);

    if (is_watched) {
        strict_watch_end(&context->strict, op);
        if (kind == CALL_RUN && status == CAPU_OK) {
            status = strict_again_run(&context->strict, op);
        }
    }
    if (context->settings.is_tracking && status == CAPU_OK) {
        status = operands_end(context, op);
    } else if (context->settings.is_tracking) {
        /* A function that refused has written nothing; a transfer may have, in part. */
        operands_abort(context, op, !is_callers(kind));
    }
    op->stage = OP_OVER;
    /* The op has run, and its record is complete. */
    if (is_watched) {
        status = strict_watch_report(&context->strict, op, status);
    }
    return status != CAPU_OK ? status : settle_call(context);
}

capu_status issue_begin(capu_context *context, struct op *op)
{
    return begin_op(context, op);
}

capu_status issue_end(capu_context *context, struct op *op, capu_status status)
{
    return end_op(context, op, status);
}

/* Argument bytes are the library's own from here on: replays read them again. */
static capu_status stage_arguments(capu_context *context, struct op *op, const capu_op *from)
{
    void *arguments = NULL;
    capu_status status = enqueue_stage(&context->guided, from->argument_bytes, &arguments);

    if (status == CAPU_OK) {
        memcpy(arguments, from->arguments, from->argument_bytes);
    }
    op->arguments = arguments;
    return status;
}

capu_status issue_op(capu_context *context, struct op *op, const capu_op *from)
{
    capu_status status = begin_op(context, op);

    if (status != CAPU_OK) {
        return status;
    }
    op->arguments = NULL;
    if (from->argument_bytes > 0) {
        status = stage_arguments(context, op, from);
    }
    if (status == CAPU_OK && op_is_planned(op)) {
        executor_note_run(&context->following, (struct bound_op){.arguments = op->arguments,
                                                                 .duration_ns = op->duration_ns});
    }
    if (status == CAPU_OK) {
        status = enqueue_op(&context->guided, op);
    }
    return end_op(context, op, status);
}

capu_status issue_transfer(capu_context *context, struct op *op, struct host_side host)
{
    struct call *call = &op->call;
    capu_status status = begin_op(context, op);

    if (status != CAPU_OK) {
        return status;
    }
    if (host.kept != NULL && !uploads_are_there(&context->residency.uploads)) {
        /* What the upload has evicted took that memory. The guide, if any, has been left by then.
         */
        host.kept = NULL;
        call->is_replayable = false;
    }
    if (call->kind == CALL_UPLOAD && context->lanes.capture.is_open) {
        status = failure_check(
            &context->failure,
            capture_upload(&context->lanes,
                           (unsigned char *)(uintptr_t)call->operands[0].address + host.offset,
                           host.bytes, &host.kept),
            "taking memory for a graph");
    }
    if (op_is_planned(op)) {
        executor_note_run(&context->following,
                          (struct bound_op){.kept = host.kept, .kept_bytes = host.bytes});
    }
    if (status == CAPU_OK) {
        status = enqueue_transfer(&context->guided, call, host);
    }
    return end_op(context, op, status);
}
