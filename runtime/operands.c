/*
 * Operands: from the ranges an op names to tensors that are resident and valid while it runs, and
 * the book-keeping behind it. capu_run, capu_access_begin, uploads, downloads and copies all pass
 * here.
 */
#include "base/array.h"
#include "runtime/access.h"
#include "runtime/contents.h"
#include "runtime/executor.h"
#include "runtime/failure.h"
#include "runtime/internal.h"
#include "runtime/leave.h"
#include "runtime/lookup.h"
#include "runtime/planning.h"
#include "runtime/recovery.h"
#include "runtime/resident.h"
#include "runtime/strict.h"
#include "runtime/swap.h"
#include "runtime/victims.h"

#include <stdio.h>
#include <stdlib.h>

void operands_finish(struct operands *operands)
{
    free(operands->accesses);
    free(operands->pieces);
    free(operands->list);
    *operands = (struct operands){0};
}

/* Adds what one operand does to one tensor. Read and read is a read, scratch and scratch is
   scratch, write and write a write; everything else is an update. */
static void merge(struct access *access, uint32_t role, bool is_whole)
{
    bool is_first = access->role == 0;
    uint32_t merged = role == CAPU_WRITE_CLEARED ? CAPU_WRITE : role;

    access->is_read = access->is_read || role == CAPU_READ || role == CAPU_UPDATE;
    if (!is_whole && merged != CAPU_READ && merged != CAPU_UPDATE) {
        access->is_partial = true;
        merged = CAPU_UPDATE;
    }
    access->role = is_first || access->role == merged ? merged : CAPU_UPDATE;
}

static capu_status add_piece(struct operands *operands, struct tensor *tensor, void *address,
                             uint64_t bytes, uint32_t role)
{
    struct access *access = access_of(operands, tensor);

    if (access == NULL || !array_reserve(&operands->pieces, &operands->piece_capacity,
                                         operands->piece_count + 1, sizeof(struct piece))) {
        return CAPU_NO_HOST_MEMORY;
    }
    merge(access, role, bytes == tensor->bytes);
    operands->pieces[operands->piece_count++] = (struct piece){
        .access = (size_t)(access - operands->accesses),
        .address = address,
        .bytes = bytes,
        .role = role,
    };
    return CAPU_OK;
}

/* Which operand it is, for errors: the op's name and a number, counted from 1. */
static const char *describe_operand(const struct operands *operands, const capu_operand *operand,
                                    char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "op '%s', operand %zu of %zu", operands->name,
             (size_t)(operand - operands->list) + 1, operands->call.operand_count);
    return text;
}

/* One operand: a piece for every tensor its range meets. */
static capu_status resolve(capu_context *context, const capu_operand *operand)
{
    const struct operands *operands = &context->operands;
    char what[160];
    unsigned char *at = (unsigned char *)(uintptr_t)operand->address;
    uint64_t left = operand->bytes;
    struct tensor *tensor = tensors_find(&context->tensors, at);
    struct tensor *first = tensor;
    capu_status status;

    if (operand->role < CAPU_READ || operand->role > CAPU_SCRATCH || operand->reserved != 0) {
        return failure_set(context, CAPU_INVALID, "%s: %u is no role, or reserved %u is not 0",
                           describe_operand(operands, operand, what, sizeof(what)), operand->role,
                           operand->reserved);
    }
    if (tensor == NULL) {
        return lookup_tensor(context, at, describe_operand(operands, operand, what, sizeof(what)),
                             &tensor);
    }
    left = left != 0 ? left : (uint64_t)(tensor_end(tensor) - at);
    while (left > 0) {
        uint64_t here;

        if (tensor == NULL) {
            return failure_set(context, CAPU_OUT_OF_RANGE,
                               "%s: %llu bytes at %p, in '%s', reach %llu bytes past the end of "
                               "the allocation",
                               describe_operand(operands, operand, what, sizeof(what)),
                               (unsigned long long)operand->bytes, operand->address,
                               lookup_name(context, first), (unsigned long long)left);
        }
        here = (uint64_t)(tensor_end(tensor) - at);
        here = here < left ? here : left;
        status = add_piece(&context->operands, tensor, at, here, operand->role);
        if (status != CAPU_OK) {
            return failure_set(context, status, "op '%s': no memory for its operands",
                               operands->name);
        }
        at += here;
        left -= here;
        tensor = tensor->next;
    }
    return CAPU_OK;
}

static capu_status check_defined(capu_context *context)
{
    struct operands *operands = &context->operands;

    for (size_t i = 0; i < operands->access_count; i++) {
        const struct access *access = &operands->accesses[i];

        if (access->is_read && !tensor_is_defined(access->tensor)) {
            return failure_set(context, CAPU_UNDEFINED_READ,
                               "op '%s' reads '%s', which has not been written%s", operands->name,
                               lookup_name(context, access->tensor),
                               access->tensor->is_persistent
                                   ? ""
                                   : " in this iteration (it is transient: what it held before "
                                     "is gone)");
        }
    }
    return CAPU_OK;
}

/* An access of an op that failed may have changed its tensor, which is another version from then
   on: replays must not take it for what they read. What was to be written whole is undefined, and
   of other contents the host copy is no copy any more. */
static void spoil(capu_context *context, const struct access *access)
{
    struct tensor *tensor = access->tensor;

    tensor->version++;
    if (!access->is_read && !access->is_partial) {
        contents_forget(context, tensor);
    } else {
        swap_drop(context, tensor);
        victims_touch(context, tensor);
    }
}

void operands_abort(capu_context *context, bool is_planned, bool has_written)
{
    struct operands *operands = &context->operands;

    failure_quiesce(context, &context->compute);
    for (size_t i = 0; i < operands->piece_count; i++) {
        const struct piece *piece = &operands->pieces[i];
        const struct access *access = &operands->accesses[piece->access];

        if (access->role != CAPU_READ && (has_written || strict_has_poisoned(context, access) ||
                                          piece->role == CAPU_WRITE_CLEARED)) {
            spoil(context, access);
        }
    }
    if (is_planned) {
        leave_guide(context); /* what comes next is not as planned; a lost context tells itself */
    }
}

/* Clears write-cleared operands. In strict mode other outputs are poisoned first. */
static capu_status prepare_pieces(capu_context *context)
{
    struct operands *operands = &context->operands;
    capu_status status = strict_poison_outputs(context);

    if (status != CAPU_OK) {
        return status;
    }
    for (size_t i = 0; i < operands->piece_count && status == CAPU_OK; i++) {
        const struct piece *piece = &operands->pieces[i];

        if (piece->role == CAPU_WRITE_CLEARED) {
            status = device_fill(context->device, context->compute.stream, piece->address, 0,
                                 piece->bytes);
        }
    }
    return failure_check(context, status, "clearing an operand");
}

/* Keeps the call with its operands: the caller's list is gone by the time the op ends. */
static capu_status keep_call(struct operands *operands, const struct call *call)
{
    if (!array_reserve(&operands->list, &operands->list_capacity, call->operand_count,
                       sizeof(*operands->list))) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < call->operand_count; i++) {
        operands->list[i] = call->operands[i];
    }
    operands->call = *call;
    operands->call.operands = operands->list;
    operands->name = call->name;
    return CAPU_OK;
}

static capu_status resolve_all(capu_context *context)
{
    struct operands *operands = &context->operands;
    capu_status status = CAPU_OK;

    operands->stamp++;
    operands->access_count = 0;
    operands->piece_count = 0;
    for (size_t i = 0; i < operands->call.operand_count && status == CAPU_OK; i++) {
        status = resolve(context, &operands->list[i]);
    }
    return status;
}

/* An op outside iterations uses what the guide in force has resident; anything else ends it. */
static capu_status visit_guide(capu_context *context)
{
    const struct operands *operands = &context->operands;
    bool is_served = true;

    for (size_t i = 0; i < operands->access_count; i++) {
        const struct tensor *tensor = operands->accesses[i].tensor;

        is_served = is_served && (!tensor_is_placed(tensor) || tensor_is_mapped(tensor));
    }
    return is_served ? CAPU_OK : leave_guide(context);
}

/* Without a plan: what is lost is recomputed first, then everything is made resident. */
static capu_status begin_unplanned(capu_context *context)
{
    bool has_run = true;
    capu_status status = CAPU_OK;

    while (has_run && status == CAPU_OK) {
        status = recovery_prepare(context, &has_run);
        if (status == CAPU_OK && has_run) {
            status = resolve_all(context);
        }
    }
    return status != CAPU_OK ? status : resident_make_ready(context);
}

/* Outside iterations a transient tensor is read: no plan may give it up before its iteration ends.
 */
capu_status operands_note_visit(capu_context *context, struct tensor *tensor)
{
    if (tensor->is_persistent || tensor->is_read_after) {
        return CAPU_OK;
    }
    tensor->is_read_after = true;
    return planning_forget(context, tensor->address);
}

/* Makes everything ready for the op, as the guide in force has it or without. */
static capu_status make_ready(capu_context *context, bool *is_planned)
{
    struct operands *operands = &context->operands;
    capu_status status = CAPU_OK;

    for (size_t i = 0; !context->in_iteration && i < operands->access_count; i++) {
        const struct access *access = &operands->accesses[i];

        if (access->is_read && status == CAPU_OK) {
            status = operands_note_visit(context, access->tensor);
        }
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (context->active != NULL) {
        status = context->in_iteration ? executor_begin(context, is_planned) : visit_guide(context);
    }
    if (status == CAPU_OK && !*is_planned) {
        status = begin_unplanned(context);
    }
    return status;
}

capu_status operands_begin(capu_context *context, const struct call *call, bool *is_planned)
{
    struct operands *operands = &context->operands;
    capu_status status = keep_call(operands, call);

    if (status != CAPU_OK) {
        return failure_set(context, status, "op '%s': no memory for its operands", call->name);
    }
    *is_planned = false;
    context->pager.has_waited = false;
    status = resolve_all(context);
    if (status == CAPU_OK) {
        status = check_defined(context);
    }
    if (status == CAPU_OK && tracker_reserve(context, operands->access_count, call->operand_count,
                                             operands->piece_count) != CAPU_OK) {
        status = failure_set(context, CAPU_NO_HOST_MEMORY, "op '%s': no memory to record it",
                             call->name);
    }
    if (status == CAPU_OK) {
        status = make_ready(context, is_planned);
    }
    if (status == CAPU_OK) {
        status = failure_check(context, tracker_mark_begin(context, &operands->start),
                               "marking the compute stream");
    }
    if (status != CAPU_OK) {
        return status;
    }
    status = prepare_pieces(context);
    if (status != CAPU_OK) {
        operands_abort(context, *is_planned, false);
    }
    return status;
}

/* What an access leaves behind. */
static void settle_access(capu_context *context, const struct access *access,
                          struct lane_position end)
{
    struct tensor *tensor = access->tensor;

    tensor->used = end;
    if (access->role == CAPU_READ) {
        return;
    }
    tensor->written = end;
    tensor->version++;
    if (access->role == CAPU_SCRATCH) {
        contents_forget(context, tensor);
    } else {
        tensor_state_written(tensor);
        swap_give_block(context, tensor);
        contents_define(context, tensor);
    }
    if (context->is_paging) {
        victims_touch(context, tensor);
    }
}

/* An update cannot be done twice. A function made for replays leaves it alone, and then all that
   matters is that nothing is brought back for it: what is always resident is there anyway. */
static bool allows_replay(const struct operands *operands, const struct access *access)
{
    return access_role(access) != CAPU_UPDATE ||
           (operands->call.replay != NULL && !tensor_is_managed(access->tensor));
}

/* Whether a replay finds the piece cleared. What a function for replays leaves alone stays as it
 * is.
 */
static bool is_cleared_again(const struct operands *operands, const struct piece *piece)
{
    const struct access *access = &operands->accesses[piece->access];
    bool is_left_alone = operands->call.replay != NULL && access->role == CAPU_UPDATE &&
                         !tensor_is_managed(access->tensor);

    return piece->role == CAPU_WRITE_CLEARED && !is_left_alone;
}

/* Under a plan only a copy out needs to know exactly where an op ends that is not timed; others can
   do with a later mark. */
static capu_status mark_end(capu_context *context, bool is_planned, struct lane_position *end)
{
    if (is_planned && !tracker_is_timing(context) && !executor_is_followed(context)) {
        *end = lane_promise(&context->compute);
        return CAPU_OK;
    }
    return tracker_mark_end(context, end);
}

capu_status operands_end(capu_context *context, bool is_planned)
{
    struct operands *operands = &context->operands;
    struct lane_position end;
    capu_status status;
    bool is_replayable = operands->call.is_replayable;
    size_t op;

    strict_poison_scratch(context);
    if (mark_end(context, is_planned, &end) != CAPU_OK) {
        /* The op runs and cannot be taken back: once it is past, its start will do for its end. */
        status = lane_synchronize(&context->compute);
        if (status != CAPU_OK) {
            failure_check(context, status, operands->name);
            context->lost = context->lost != CAPU_OK ? context->lost : CAPU_DEVICE_LOST;
            return context->lost;
        }
        end = operands->start;
    }
    for (size_t i = 0; i < operands->access_count; i++) {
        is_replayable = is_replayable && allows_replay(operands, &operands->accesses[i]);
    }
    op = tracker_op(context, &operands->call, is_replayable);
    for (size_t i = 0; i < operands->access_count; i++) {
        struct access *access = &operands->accesses[i];
        uint32_t role = access_role(access);

        settle_access(context, access, end);
        tracker_access(context, access->tensor, role);
        if (access->is_partial) {
            tracker_partial(context);
        }
    }
    for (size_t i = 0; i < operands->piece_count; i++) {
        if (is_cleared_again(operands, &operands->pieces[i])) {
            tracker_cleared(context, operands->pieces[i].address, operands->pieces[i].bytes);
        }
    }
    tracker_marks(context, op, operands->start, end);
    return is_planned ? executor_end(context) : CAPU_OK;
}
