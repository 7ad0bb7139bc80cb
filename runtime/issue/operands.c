/*
 * Operands: from the ranges that an op names to tensors that are resident and valid while it runs,
 * and updating the books after it. Every call that touches the contents of tensors passes here.
 *
 * An op names ranges, which may overlap, cover several tensors, or name one tensor twice. They are
 * resolved to one access per tensor first, and checked before anything is changed, so that an op
 * that cannot run leaves no trace. Then the op is compared with the active guide (executor.h);
 * without a guide, lost contents are recomputed and the tensors are made resident.
 */
#include "runtime/issue/issue.h"

#include "base/array.h"
#include "runtime/context/failure.h"
#include "runtime/follow/executor.h"
#include "runtime/follow/recovery.h"
#include "runtime/issue/whole.h"
#include "runtime/op/op.h"
#include "runtime/plan/planning.h"
#include "runtime/residency/pager.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/strict/strict.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/order.h"

#include <stdio.h>
#include <string.h>

/* Adds what one operand does to one tensor. Two equal roles stay what they are; any other mixture
   is an update. */
static void merge_role(struct access *access, uint32_t role, bool is_whole)
{
    uint32_t merged =
        role == CAPU_WRITE_REST_ZERO || role == CAPU_WRITE_REST_UNDEFINED ? CAPU_WRITE : role;

    if (role == CAPU_READ || role == CAPU_UPDATE) {
        access->is_read = true;
    } else if (!is_whole) {
        access->is_partial = true;
        merged = CAPU_UPDATE;
    }
    access->role = access->role == 0 || access->role == merged ? merged : CAPU_UPDATE;
}

static capu_status add_piece(struct op *op, size_t operand, struct tensor *tensor, void *address,
                             uint64_t bytes)
{
    uint32_t role = op->list[operand].role;
    struct access *access = access_of(op, tensor);

    if (access == NULL || !array_reserve(&op->pieces, &op->piece_capacity, op->piece_count + 1,
                                         sizeof(struct piece))) {
        return CAPU_NO_HOST_MEMORY;
    }
    merge_role(access, role, bytes == tensor->bytes);
    op->clears = op->clears || role == CAPU_WRITE_REST_ZERO;
    op->pieces[op->piece_count++] = (struct piece){
        .address = address,
        .bytes = bytes,
        .access = (uint32_t)tensor->in_op.index,
        .operand = (uint32_t)operand,
    };
    return CAPU_OK;
}

/* Which operand it is, for errors: the op's name and a number, counted from 1. */
static const char *describe_operand(const struct op *op, const capu_operand *operand, char *text,
                                    size_t text_bytes)
{
    snprintf(text, text_bytes, "op '%s', operand %zu of %zu", op->call.name,
             (size_t)(operand - op->list) + 1, op->call.operand_count);
    return text;
}

/* Resolves one operand to a piece for each tensor that its range meets. An operand that discards
   what it does not write becomes all of those tensors, whichever part it names. That is what is
   compared with plans, so one plan serves all parts. */
static capu_status resolve_operand(capu_context *context, struct op *op, size_t number)
{
    capu_operand *operand = &op->list[number];
    char what[160];
    unsigned char *at = (unsigned char *)(uintptr_t)operand->address;
    uint64_t left = operand->bytes;
    struct tensor *tensor = tensors_find(&context->memory.tensors, at);
    struct tensor *first = tensor;
    bool is_extended = operand->role == CAPU_WRITE_REST_UNDEFINED;
    capu_status status;

    if (operand->role < CAPU_READ || operand->role > CAPU_WRITE_REST_UNDEFINED ||
        operand->reserved != 0) {
        return failure_set(
            &context->failure, CAPU_INVALID, "%s: %u is no role, or reserved %u is not 0",
            describe_operand(op, operand, what, sizeof(what)), operand->role, operand->reserved);
    }
    if (tensor == NULL) {
        return lookup_tensor(&context->memory, at,
                             describe_operand(op, operand, what, sizeof(what)), &tensor);
    }
    left = left != 0 ? left : (uint64_t)(tensor_end(tensor) - at);
    while (left > 0) {
        uint64_t here;

        if (tensor == NULL) {
            return failure_set(&context->failure, CAPU_WRONG_ADDRESS,
                               "%s: %llu bytes at %p, in '%s', reach %llu bytes past the end of "
                               "the allocation",
                               describe_operand(op, operand, what, sizeof(what)),
                               (unsigned long long)operand->bytes, operand->address,
                               lookup_name(&context->memory, first), (unsigned long long)left);
        }
        here = (uint64_t)(tensor_end(tensor) - at);
        here = here < left ? here : left;
        status = add_piece(op, number, tensor, is_extended ? tensor->address : at,
                           is_extended ? tensor->bytes : here);
        if (status != CAPU_OK) {
            return failure_set(&context->failure, status, "op '%s': no memory for its operands",
                               op->call.name);
        }
        at += here;
        left -= here;
        if (left == 0 && is_extended) {
            operand->address = first->address;
            operand->bytes = (uint64_t)(tensor_end(tensor) - (unsigned char *)first->address);
        }
        tensor = left > 0 ? tensor->next : tensor;
    }
    return CAPU_OK;
}

static capu_status check_defined(capu_context *context, const struct op *op)
{
    for (size_t i = 0; i < op->access_count; i++) {
        const struct access *access = &op->accesses[i];

        if (access->is_read && !tensor_is_defined(access->tensor)) {
            return failure_set(&context->failure, CAPU_UNDEFINED_READ,
                               "op '%s' reads '%s', which has not been written%s", op->call.name,
                               lookup_name(&context->memory, access->tensor),
                               access->tensor->is_persistent
                                   ? ""
                                   : " in this iteration (it is transient: what it held before "
                                     "is gone)");
        }
    }
    return CAPU_OK;
}

/* An op that failed may have changed this tensor. It gets a new version, so that replays do not
   mistake it for what they read. If it was to be written whole, it is undefined now; otherwise its
   host copy is outdated. */
static void spoil_tensor(capu_context *context, const struct access *access)
{
    struct tensor *tensor = access->tensor;

    tensor->version++;
    if (!access->is_read && !access->is_partial) {
        contents_forget(&context->residency, tensor);
    } else {
        swap_drop(&context->residency, tensor);
        victims_touch(&context->residency, tensor);
    }
}

void operands_abort(capu_context *context, const struct op *op, bool has_written)
{
    capture_give_up(&context->lanes, "an op failed");
    lanes_quiesce(&context->lanes, &context->lanes.compute);
    for (size_t i = 0; i < op->piece_count; i++) {
        const struct piece *piece = &op->pieces[i];
        const struct access *access = &op->accesses[piece->access];

        if (access->role != CAPU_READ &&
            (has_written || strict_has_poisoned(&context->strict, access) ||
             piece_role(op, piece) == CAPU_WRITE_REST_ZERO)) {
            spoil_tensor(context, access);
        }
    }
    if (op_is_planned(op)) {
        leave_guide(&context->residency); /* the rest is not as planned; a lost context is reported
                                             by the next call */
    }
}

/* Clears operands whose rest must be zero. In strict mode other outputs are poisoned first. */
static capu_status prepare_pieces(capu_context *context, const struct op *op)
{
    capu_status status = strict_poison_outputs(&context->strict, op);

    if (status != CAPU_OK) {
        return status;
    }
    for (size_t i = 0; op->clears && i < op->piece_count && status == CAPU_OK; i++) {
        const struct piece *piece = &op->pieces[i];

        if (piece_role(op, piece) == CAPU_WRITE_REST_ZERO) {
            status = device_fill(context->lanes.device, context->lanes.compute.stream,
                                 piece->address, 0, piece->bytes);
        }
    }
    return failure_check(&context->failure, status, "clearing an operand");
}

/* Copies the operands: the caller's list may be gone when the op ends. */
static capu_status keep_operands(struct op *op)
{
    size_t count = op->call.operand_count;

    if (!array_reserve(&op->list, &op->list_capacity, count, sizeof(*op->list))) {
        return CAPU_NO_HOST_MEMORY;
    }
    if (count > 0) {
        memcpy(op->list, op->call.operands, count * sizeof(*op->list));
    }
    op->call.operands = op->list;
    return CAPU_OK;
}

static capu_status resolve_all(capu_context *context, struct op *op)
{
    capu_status status = CAPU_OK;

    op->stamp = victims_spare(&context->residency.victims);
    op->access_count = 0;
    op->piece_count = 0;
    op->clears = false;
    for (size_t i = 0; i < op->call.operand_count && status == CAPU_OK; i++) {
        status = resolve_operand(context, op, i);
    }
    return status;
}

capu_status operands_check(capu_context *context, struct op *op)
{
    capu_status status = keep_operands(op);

    if (status != CAPU_OK) {
        return failure_set(&context->failure, status, "op '%s': no memory for its operands",
                           op->call.name);
    }
    return resolve_all(context, op);
}

/* What has run meanwhile was spared instead of the operands. */
static void spare_again(capu_context *context, struct op *op)
{
    op->stamp = victims_spare(&context->residency.victims);
    for (size_t i = 0; i < op->access_count; i++) {
        op->accesses[i].tensor->in_op = (struct tensor_mention){.stamp = op->stamp, .index = i};
    }
}

/* Without a plan: recomputes lost contents, then makes everything resident. */
static capu_status begin_unplanned(capu_context *context, struct op *op)
{
    capu_status status = recovery_prepare(&context->following, op);

    if (op->stamp != context->residency.victims.spared) {
        spare_again(context, op);
    }
    if (status == CAPU_CONTENTS_LOST) {
        planning_note_loss(&context->plans);
    }
    return status != CAPU_OK ? status : pager_make_ready(&context->residency, op);
}

capu_status operands_note_visit(capu_context *context, struct tensor *tensor)
{
    if (tensor->is_persistent || tensor->is_read_after) {
        return CAPU_OK;
    }
    tensor->is_read_after = true;
    return planning_forget(&context->plans, tensor->address);
}

/* Makes everything ready for the op, with the active guide or without one. */
static capu_status make_op_ready(capu_context *context, struct op *op)
{
    capu_status status = CAPU_OK;

    for (size_t i = 0; !context->iteration.is_open && i < op->access_count; i++) {
        const struct access *access = &op->accesses[i];

        if (access->is_read && status == CAPU_OK) {
            status = operands_note_visit(context, access->tensor);
        }
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (context->guided.active != NULL) {
        status = context->iteration.is_open ? executor_begin(&context->following, op)
                                            : executor_visit(&context->following, op);
    }
    if (status == CAPU_OK && !op_is_planned(op)) {
        status = begin_unplanned(context, op);
    }
    return status;
}

capu_status operands_begin(capu_context *context, struct op *op)
{
    capu_status status;

    traffic_begin_op(&context->records.traffic);
    status = operands_check(context, op);
    if (status == CAPU_OK) {
        status = check_defined(context, op);
    }
    if (status == CAPU_OK && tracker_reserve(&context->records, op->access_count,
                                             op->call.operand_count, op->piece_count) != CAPU_OK) {
        status = failure_set(&context->failure, CAPU_NO_HOST_MEMORY,
                             "op '%s': no memory to record it", op->call.name);
    }
    if (status == CAPU_OK) {
        status = make_op_ready(context, op);
    }
    if (status == CAPU_OK && !context->iteration.is_open) {
        outside_note(&context->records, op);
    }
    if (status == CAPU_OK) {
        status = failure_check(&context->failure, tracker_mark_begin(&context->records, &op->start),
                               "marking the compute stream");
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (context->records.traffic.from.lane != NULL) {
        traffic_wait_end(&context->records, op->start);
    }
    status = prepare_pieces(context, op);
    if (status != CAPU_OK) {
        operands_abort(context, op, false);
    }
    return status;
}

/* Updates a tensor after an access. */
static void settle_access(capu_context *context, const struct access *access,
                          struct lane_position end)
{
    struct tensor *tensor = access->tensor;

    order_used(tensor, end);
    if (access->role == CAPU_READ) {
        return;
    }
    tensor->written = end;
    tensor->version++;
    if (access->role == CAPU_SCRATCH) {
        contents_forget(&context->residency, tensor);
    } else {
        tensor_state_written(tensor);
        swap_give_block(&context->residency, tensor);
        contents_define(&context->residency, tensor);
    }
    if (context->settings.is_paging) {
        victims_touch(&context->residency, tensor);
    }
}

/* Whether the piece is cleared before a replay, too. A tensor that the function for replays leaves
   alone must stay as it is. */
static bool is_cleared_again(const struct op *op, const struct piece *piece)
{
    const struct access *access = &op->accesses[piece->access];
    bool is_left_alone = op->call.replay != NULL && access->role == CAPU_UPDATE &&
                         !tensor_is_managed(access->tensor);

    return piece_role(op, piece) == CAPU_WRITE_REST_ZERO && !is_left_alone;
}

/* Under a plan, only a copy out needs to know exactly where an untimed op ends. For everything else
   a later mark is good enough, and cheaper. */
static capu_status mark_end(capu_context *context, const struct op *op, struct lane_position *end)
{
    if (op_is_planned(op) && !tracker_is_timing(&context->records) &&
        !executor_is_followed(&context->following)) {
        *end = lane_promise(&context->lanes.compute);
        return CAPU_OK;
    }
    return tracker_mark_end(&context->records, end);
}

capu_status operands_end(capu_context *context, struct op *op)
{
    struct lane_position end;
    capu_status status;
    bool is_replayable;
    size_t number;

    strict_poison_scratch(&context->strict, op);
    if (mark_end(context, op, &end) != CAPU_OK) {
        /* The op is enqueued and cannot be undone. Once it has finished, its start serves as its
         * end. */
        capture_give_up(&context->lanes, "the end of an op cannot be marked");
        status = lane_synchronize(&context->lanes.compute);
        if (status != CAPU_OK) {
            failure_check(&context->failure, status, op->call.name);
            context->failure.lost =
                context->failure.lost != CAPU_OK ? context->failure.lost : CAPU_DEVICE_LOST;
            return context->failure.lost;
        }
        end = op->start;
    }
    is_replayable = access_can_replay(op);
    number = tracker_op(&context->records, &op->call, is_replayable);
    for (size_t i = 0; i < op->access_count; i++) {
        settle_access(context, &op->accesses[i], end);
    }
    tracker_accesses(&context->records, op);
    for (size_t i = 0; op->clears && i < op->piece_count; i++) {
        if (is_cleared_again(op, &op->pieces[i])) {
            tracker_cleared(&context->records, op->pieces[i].address, op->pieces[i].bytes);
        }
    }
    tracker_marks(&context->records, number, &op->call, op->start, end);
    return op_is_planned(op) ? executor_end(&context->following, op) : CAPU_OK;
}
