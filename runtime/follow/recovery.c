/* Running ops of a guide again, and recomputing what it dropped before it was left: see
   recovery.h. */
#include "runtime/follow/recovery.h"

#include "base/assert.h"
#include "runtime/context/failure.h"
#include "runtime/follow/following.h"
#include "runtime/guide/enqueue.h"
#include "runtime/guide/owed.h"
#include "runtime/residency/pager.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/strict/strict.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/order.h"

#include <string.h>

/*
 * Running an op of a guide again.
 */

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
static capu_status enqueue_work(struct following *following, const struct guide *guide,
                                uint32_t number)
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
static void settle_replay(struct following *following, const struct guide *guide, uint32_t number,
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
        status = enqueue_work(following, guide, number);
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
    settle_replay(following, guide, number, start, end);
    return CAPU_OK;
}

/*
 * Recovery.
 */

bool recovery_has(const struct following *following, const struct allocation *allocation)
{
    for (const struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        uint32_t number = owed_find(following->guided, tensor);

        /* A replay may write a piece that shares its pages, too: those are the allocation's. */
        if (number != OWED_NONE && (following->guided->binding.tensors[number].tensor == tensor ||
                                    allocation->edge_pages != NULL)) {
            return true;
        }
    }
    return false;
}

void recovery_note_freed(struct following *following, const struct tensor *tensor)
{
    uint32_t number = owed_find(following->guided, tensor);

    if (number != OWED_NONE && !tensor_is_managed(tensor)) {
        following->guided->owed.entries[number].version = tensor->version;
    }
}

/* Why a tensor cannot be recomputed; fail_read says more for the program. */
static capu_status fail_lost(struct following *following, struct tensor *tensor, const char *why)
{
    return failure_set(following->failure, CAPU_CONTENTS_LOST, "'%s' cannot be recomputed: %s",
                       lookup_name(following->memory, tensor), why);
}

/* The operand that names what an access of an op reads, counted from 1. */
static size_t operand_of(const struct op *op, const struct access *access)
{
    for (size_t i = 0; i < op->piece_count; i++) {
        if (&op->accesses[op->pieces[i].access] == access) {
            return op->pieces[i].operand + (size_t)1;
        }
    }
    return 1;
}

/* Says which op reads what a plan has given up, and how to avoid that. */
static capu_status fail_read(struct following *following, const struct op *op,
                             const struct access *access)
{
    const struct record *open = following->records->tracker.open;
    const struct record *newest = following->records->tracker.newest;
    const char *label = following->guided->owed.guide != NULL ? following->guided->owed.guide->label
                        : open != NULL                        ? open->label
                        : newest != NULL                      ? newest->label
                                                              : "";
    bool has_label = label[0] != '\0';
    char why[ERROR_TEXT_BYTES / 2];

    memcpy(why, following->failure->text, sizeof(why));
    why[sizeof(why) - 1] = '\0';
    return failure_set(
        following->failure, CAPU_CONTENTS_LOST,
        "op '%s', operand %zu of %zu, reads '%s', which the plan for %s%s%s has discarded: the "
        "iteration that the plan was made from did not read it again. %s. From now on, plans for "
        "this label keep such contents. To avoid the failure, give iterations of another kind a "
        "label of their own, describe the tensor as persistent, or set keep_contents "
        "(CAPUCHIN_KEEP_CONTENTS=1)",
        op->call.name, operand_of(op, access), op->call.operand_count,
        lookup_name(following->memory, access->tensor),
        has_label ? "label '" : "iterations without a label", label, has_label ? "'" : "", why);
}

/* Whether a part of it is in always-resident memory, which cannot be saved from a replay. */
static bool has_fixed_part(const struct tensor *tensor)
{
    return tensor != NULL && tensor_is_defined(tensor) && tensor->span_bytes != tensor->bytes;
}

/* Why a replay cannot have what this access of its op had; NULL: it can. */
static const char *check_access(struct following *following, uint32_t number)
{
    const struct guide_access *access = &following->guided->owed.guide->accesses[number];
    const struct tensor *tensor = owed_tensor(following->guided, access->tensor);
    uint64_t version =
        tensor != NULL ? tensor->version : following->guided->owed.entries[access->tensor].version;
    bool is_other = version != following->guided->binding.versions[number];
    bool is_spoilt = tensor != NULL && !tensor_is_defined(tensor); /* by an op that failed */

    if (access->role == CAPU_READ && (is_other || is_spoilt)) {
        return "what it was made from has been overwritten";
    }
    /* What a replayable op updates its replays leave alone. */
    if (access->role == CAPU_WRITE && is_other && has_fixed_part(tensor)) {
        return "the op that made it would overwrite a newer small tensor";
    }
    return NULL;
}

/* Whether the op that made a tensor can be run again: what it read is there as it was, or lost as
   it was. *missing: an input that must be recomputed first, or OWED_NONE. */
static capu_status check_replay(struct following *following, uint32_t wanted, uint32_t *missing)
{
    const struct guide *guide = following->guided->owed.guide;
    const struct owed_entry *entry = &following->guided->owed.entries[wanted];
    struct tensor *tensor = following->guided->binding.tensors[wanted].tensor;
    const struct guide_op *op;

    *missing = OWED_NONE;
    if (entry->maker == 0 || entry->version != tensor->version) {
        return fail_lost(following, tensor, "no op of this iteration made it");
    }
    op = &guide->ops[entry->maker - 1];
    if (!op->is_replayable) {
        return fail_lost(following, tensor, "the op that made it is not replayable");
    }
    if (op->call.kind == CALL_UPLOAD && !uploads_are_there(&following->residency->uploads)) {
        return fail_lost(following, tensor,
                         "the host budget had no room to keep what was uploaded");
    }
    for (uint32_t i = op->accesses.first; i < op->accesses.first + op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[i];
        const char *why = check_access(following, i);

        if (why != NULL) {
            return fail_lost(following, tensor, why);
        }
        if (access->role == CAPU_READ && owed_is_lost(following->guided, access->tensor)) {
            *missing = access->tensor;
        }
    }
    return CAPU_OK;
}

/* Saves contents on the host that a replay is about to overwrite with older ones. */
static capu_status shelter_contents(struct following *following, struct tensor *tensor)
{
    if (tensor->state.contents != CONTENTS_DEVICE) {
        return CAPU_OK;
    }
    return swap_out(following->residency, tensor, true);
}

static capu_status gather_operands(struct following *following, const struct guide_op *planned)
{
    const struct guide *guide = following->guided->owed.guide;
    struct guide_part part = planned->accesses;
    struct op *again = &following->guided->owed.again;
    capu_status status = CAPU_OK;

    again->call = planned->call;
    again->stamp = victims_spare(&following->residency->victims);
    again->access_count = 0;
    for (uint32_t i = part.first; i < part.first + part.count && status == CAPU_OK; i++) {
        const struct guide_access *access = &guide->accesses[i];
        uint64_t version = following->guided->binding.versions[i];
        struct tensor *tensor = owed_tensor(following->guided, access->tensor);

        if (tensor == NULL) {
            /* A freed small one: its memory rests until the iteration ends. */
            if (access->role == CAPU_WRITE) {
                following->guided->owed.entries[access->tensor].version = version;
            }
            continue;
        }
        if (access->role != CAPU_READ && tensor->version != version) {
            status = shelter_contents(following, tensor);
        }
        if (status == CAPU_OK && access_add(again, tensor, access->role) != CAPU_OK) {
            status = failure_set(following->failure, CAPU_NO_HOST_MEMORY, "no memory for a replay");
        }
    }
    return status;
}

/* Runs an op of the guide again, with its operands made resident as without a plan. An error names
   that op, not the one that the program has called. */
static capu_status run_again(struct following *following, uint32_t number)
{
    const struct guide *guide = following->guided->owed.guide;
    capu_status status;

    following->residency->uploads.is_held = guide->ops[number].call.kind == CALL_UPLOAD;
    status = gather_operands(following, &guide->ops[number]);
    if (status == CAPU_OK) {
        status = pager_make_ready(following->residency, &following->guided->owed.again);
    }
    if (status == CAPU_OK) {
        status = replay_run(following, guide, number);
        if (status != CAPU_OK) {
            owed_mark(following->guided); /* what it may have taken along is owed now, too */
        }
    }
    following->residency->uploads.is_held = false;
    return status;
}

/* Says for which tensor an op could not run again: the program has not called that op. */
static capu_status fail_replay(struct following *following, uint32_t wanted, capu_status status)
{
    char why[ERROR_TEXT_BYTES];

    memcpy(why, following->failure->text, sizeof(why));
    return failure_set(
        following->failure, status,
        "'%s' must be recomputed, since this iteration has left its plan: %s",
        lookup_name(following->memory, following->guided->binding.tensors[wanted].tensor), why);
}

/* Recomputes one tensor, and first its lost inputs. Each input is older than the tensor that is
   made from it, so the stack never contains a tensor twice. */
static capu_status recover_tensor(struct following *following, uint32_t wanted)
{
    struct owed *owed = &following->guided->owed;
    uint32_t depth = 0;

    owed->stack[depth++] = wanted;
    while (depth > 0) {
        uint32_t top = owed->stack[depth - 1];
        uint32_t missing;
        capu_status status;

        if (!owed_is_lost(following->guided, top)) {
            depth--;
            continue;
        }
        status = check_replay(following, top, &missing);
        if (status != CAPU_OK) {
            return status;
        }
        if (missing != OWED_NONE) {
            ASSERT(depth <= owed->guide->tensor_count);
            owed->stack[depth++] = missing;
            continue;
        }
        status = run_again(following, owed->entries[top].maker - 1);
        if (status != CAPU_OK) {
            return following->failure->lost != CAPU_OK ? status
                                                       : fail_replay(following, top, status);
        }
    }
    return CAPU_OK;
}

/* Everything that the plan would have recomputed. */
static capu_status recover_owed(struct following *following)
{
    const struct guide *guide = following->guided->owed.guide;

    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        if (owed_is_due(following->guided, i)) {
            bool is_owed = tensor_is_owed(following->guided->binding.tensors[i].tensor);
            capu_status status = recover_tensor(following, i);

            /* What the plan gave up for good is recomputed if possible. */
            if (status != CAPU_OK && (is_owed || following->failure->lost != CAPU_OK)) {
                return status;
            }
        }
    }
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        following->guided->owed.entries[i].is_source = false;
    }
    return CAPU_OK;
}

capu_status recovery_before_write(struct following *following, struct tensor *tensor)
{
    return owed_is_source(following->guided, tensor) ? recover_owed(following) : CAPU_OK;
}

capu_status recovery_restore(struct following *following, struct tensor *tensor)
{
    if (!tensor_is_lost(tensor)) {
        return CAPU_OK;
    }
    if (owed_find(following->guided, tensor) == OWED_NONE) {
        return fail_lost(following, tensor, "it is not of this iteration any more");
    }
    return recover_tensor(following, tensor->guide_index);
}

static bool overwrites_source(const struct following *following, const struct op *op)
{
    for (size_t i = 0; i < op->access_count; i++) {
        if (op->accesses[i].role != CAPU_READ &&
            owed_is_source(following->guided, op->accesses[i].tensor)) {
            return true;
        }
    }
    return false;
}

/* The first access to contents that are lost; NULL: there is none. */
static const struct access *find_lost(const struct op *op)
{
    for (size_t i = 0; i < op->access_count; i++) {
        const struct access *access = &op->accesses[i];

        if (access_needs_contents(access) && tensor_is_lost(access->tensor)) {
            return access;
        }
    }
    return NULL;
}

static capu_status prepare_op(struct following *following, const struct op *op)
{
    const struct access *lost;
    capu_status status = CAPU_OK;

    if (overwrites_source(following, op)) {
        status = recover_owed(following);
    }
    while (status == CAPU_OK && (lost = find_lost(op)) != NULL) {
        status = recovery_restore(following, lost->tensor);
        if (status == CAPU_CONTENTS_LOST) {
            return fail_read(following, op, lost);
        }
    }
    return status;
}

capu_status recovery_prepare(struct following *following, const struct op *op)
{
    /* In other modes nothing is ever given up. */
    return following->settings->config.mode == CAPU_MODE_GUIDED ? prepare_op(following, op)
                                                                : CAPU_OK;
}

/* Plans also keep what was ever read outside iterations, so the program may rely on it. */
static bool outlives_iteration(const struct tensor *tensor)
{
    return (tensor->is_persistent || tensor->is_read_after) && !tensor->allocation->is_freed;
}

bool recovery_must_begin(const struct following *following)
{
    const struct guide *guide = following->guided->active->guide;

    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        if (!guide->tensors[i].is_kept && owed_is_lost(following->guided, i) &&
            outlives_iteration(following->guided->binding.tensors[i].tensor)) {
            return true;
        }
    }
    return false;
}

/* The pages that the op which made a tensor needs to run again; 0: no op of this iteration did. */
static size_t replay_pages(const struct following *following, uint32_t number)
{
    const struct guide *guide = following->guided->owed.guide;
    uint32_t maker = following->guided->owed.entries[number].maker;
    struct guide_part accesses = {0};
    size_t pages = 0;

    if (maker > 0) {
        accesses = guide->ops[maker - 1].accesses;
    }
    for (uint32_t i = accesses.first; i < accesses.first + accesses.count; i++) {
        pages += guide->tensors[guide->accesses[i].tensor].page_count;
    }
    return pages;
}

capu_status recovery_before_fixed(struct following *following, size_t page_count)
{
    const struct guide *guide = following->guided->owed.guide;
    size_t fixed = memory_fixed_pages(following->memory) + page_count;
    size_t limit = pages_limit(following->memory->pages);
    size_t room = limit > fixed ? limit - fixed : 0;

    for (uint32_t i = 0; guide != NULL && i < guide->tensor_count; i++) {
        struct tensor *tensor = following->guided->binding.tensors[i].tensor;
        bool is_needed = owed_is_lost(following->guided, i) &&
                         (tensor_is_owed(tensor) || outlives_iteration(tensor));
        capu_status status = CAPU_OK;

        if (owed_is_lost(following->guided, i) && replay_pages(following, i) > room) {
            status = recover_tensor(following, i);
        }
        /* Dead contents are only kept readable as far as that is possible. */
        if (following->failure->lost != CAPU_OK ||
            (status != CAPU_OK && status != CAPU_CONTENTS_LOST && is_needed)) {
            return status;
        }
    }
    return CAPU_OK;
}

capu_status recovery_finish(struct following *following)
{
    const struct guide *guide = following->guided->owed.guide;
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; guide != NULL && i < guide->tensor_count && status == CAPU_OK; i++) {
        if (owed_is_lost(following->guided, i) &&
            outlives_iteration(following->guided->binding.tensors[i].tensor)) {
            status = recover_tensor(following, i);
            if (status == CAPU_CONTENTS_LOST) {
                status = CAPU_OK; /* the recorded iteration overwrote it: reading it now fails */
            }
        }
    }
    if (status == CAPU_OK) {
        following->guided->owed.guide = NULL;
    }
    return status;
}

capu_status recovery_end_early(struct following *following, struct tensor *tensor)
{
    const struct guide *guide = following->guided->owed.guide;
    capu_status status;

    if (owed_find(following->guided, tensor) == OWED_NONE) {
        return CAPU_OK;
    }
    status = recover_owed(following);
    /* The iteration may still read all that is dead. What cannot be recomputed stays lost. */
    for (uint32_t i = 0; i < guide->tensor_count && status == CAPU_OK; i++) {
        if (owed_is_lost(following->guided, i) && recover_tensor(following, i) != CAPU_OK) {
            status = following->failure->lost;
        }
    }
    return status != CAPU_OK ? status : recovery_finish(following);
}
