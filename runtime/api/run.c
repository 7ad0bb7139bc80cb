/* capu_run, accesses of the caller's own launches, and segments: see capuchin/op.h. */
#include "capuchin/private.h"
#include "runtime/api/context.h"
#include "runtime/context/config.h"
#include "runtime/context/failure.h"
#include "runtime/issue/issue.h"

#include <string.h>

/* Copies a caller's op, whatever its version, and checks it. */
static capu_status read_op(capu_context *context, const capu_op *from, bool needs_run, capu_op *op)
{
    if (from == NULL) {
        return failure_set(&context->failure, CAPU_INVALID, "no op was given");
    }
    if (!struct_read(op, sizeof(*op), from, from->size)) {
        return failure_set(&context->failure, CAPU_WRONG_STRUCT,
                           "a capu_op of %zu bytes; this library's is %zu", from->size,
                           sizeof(*op));
    }
    if (op->name == NULL || op->name[0] == '\0') {
        return failure_set(&context->failure, CAPU_INVALID, "an op has no name");
    }
    if (needs_run && op->run == NULL) {
        return failure_set(&context->failure, CAPU_INVALID, "op '%s' has no run function",
                           op->name);
    }
    if (op->operand_count > CAPU_OPERAND_COUNT_MAX) {
        return failure_set(&context->failure, CAPU_INVALID, "op '%s' has %zu operands: at most %d",
                           op->name, op->operand_count, CAPU_OPERAND_COUNT_MAX);
    }
    if (op->operand_count > 0 && op->operands == NULL) {
        return failure_set(&context->failure, CAPU_INVALID, "op '%s' has %zu operands but no array",
                           op->name, op->operand_count);
    }
    if (op->argument_bytes > 0 && op->arguments == NULL) {
        return failure_set(&context->failure, CAPU_INVALID,
                           "op '%s' has %zu bytes of arguments but `arguments` is NULL", op->name,
                           op->argument_bytes);
    }
    if ((op->flags & ~(uint32_t)CAPU_OP_NOT_REPLAYABLE) != 0) {
        return failure_set(&context->failure, CAPU_INVALID, "op '%s' has unknown flags 0x%x",
                           op->name, op->flags & ~(uint32_t)CAPU_OP_NOT_REPLAYABLE);
    }
    if (op->reserved != 0) {
        return failure_set(&context->failure, CAPU_INVALID, "op '%s': reserved is %u; it must be 0",
                           op->name, op->reserved);
    }
    op->name = names_intern(&context->memory.names, op->name);
    if (op->name == NULL) {
        return failure_set(&context->failure, CAPU_NO_HOST_MEMORY, "no memory for an op's name");
    }
    return CAPU_OK;
}

/* Field by field: a whole struct would be built elsewhere and copied with wide loads, which wait
   for the narrow stores before them longer than all else here takes. */
static void fill_in_op(struct op *op, const capu_op *from, enum call_kind kind)
{
    struct call *call = &op->call;

    call->kind = kind;
    call->name = from->name;
    call->run = from->run;
    call->replay = from->replay;
    call->key = from->key;
    call->is_once = false;
    call->is_replayable = kind == CALL_RUN && (from->flags & CAPU_OP_NOT_REPLAYABLE) == 0;
    call->operands = from->operands;
    call->operand_count = from->operand_count;
    op->duration_ns = from->duration_ns;
}

capu_status capu_run(capu_context *context, const capu_op *op)
{
    capu_status status = context_ready(&context, "capu_run");
    capu_op copy;

    if (status == CAPU_OK) {
        status = read_op(context, op, true, &copy);
    }
    if (status != CAPU_OK) {
        return status;
    }
    fill_in_op(&context->op, &copy, CALL_RUN);
    return issue_op(context, &context->op, &copy);
}

capu_status capu_access_begin(capu_context *context, const capu_op *op)
{
    capu_status status = context_ready(&context, "capu_access_begin");
    capu_op copy;

    if (status == CAPU_OK) {
        status = read_op(context, op, false, &copy);
    }
    if (status != CAPU_OK) {
        return status;
    }
    fill_in_op(&context->op, &copy, CALL_ACCESS);
    status = issue_begin(context, &context->op);
    if (status == CAPU_OK && context->lanes.device->capabilities.runs_on_stream) {
        status = failure_check(&context->failure, lane_synchronize(&context->lanes.compute),
                               "waiting for access");
        if (status != CAPU_OK) {
            issue_end(context, &context->op, status);
        }
    }
    return status;
}

capu_status capu_access_end(capu_context *context)
{
    capu_status status = context_usable(&context);

    if (status != CAPU_OK) {
        return status;
    }
    if (!op_is_under_way(&context->op)) {
        return failure_set(&context->failure, CAPU_WRONG_ORDER,
                           "capu_access_end without capu_access_begin");
    }
    return issue_end(context, &context->op, CAPU_OK);
}

capu_status capu_segment_begin(capu_context *context, const char *name)
{
    capu_status status = context_ready(&context, "capu_segment_begin");
    const char *interned;

    if (status != CAPU_OK) {
        return status;
    }
    if (name == NULL || name[0] == '\0') {
        return failure_set(&context->failure, CAPU_INVALID, "a segment has no name");
    }
    if (!context->iteration.is_open) {
        return failure_set(&context->failure, CAPU_WRONG_ORDER,
                           "segment '%s' begins outside an iteration", name);
    }
    interned = names_intern(&context->memory.names, name);
    if (interned == NULL) {
        return failure_set(&context->failure, CAPU_NO_HOST_MEMORY,
                           "no memory for a segment's name");
    }
    if (context->records.tracker.segment_depth++ == 0) {
        context->records.tracker.segment = interned;
    }
    return CAPU_OK;
}

capu_status capu_segment_end(capu_context *context)
{
    capu_status status = context_ready(&context, "capu_segment_end");

    if (status != CAPU_OK) {
        return status;
    }
    if (context->records.tracker.segment_depth == 0) {
        return failure_set(&context->failure, CAPU_WRONG_ORDER,
                           "capu_segment_end without capu_segment_begin");
    }
    if (--context->records.tracker.segment_depth == 0) {
        context->records.tracker.segment = NULL;
    }
    return CAPU_OK;
}

capu_status capu_run_waited(uint64_t ns)
{
    return device_note(&(struct device_tally){.waited_ns = ns});
}

capu_status capuchin_run_exchanged(uint64_t bytes, uint64_t ns)
{
    return device_note(&(struct device_tally){.exchange_ns = ns, .exchanged_bytes = bytes});
}

capu_status capu_run_explain(const char *text)
{
    return text != NULL ? device_explain(text) : CAPU_INVALID;
}
