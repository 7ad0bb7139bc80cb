/* Recomputing what a plan that is no longer in force gave up, see recovery.h. */
#include "runtime/recovery.h"

#include "runtime/access.h"
#include "runtime/failure.h"
#include "runtime/internal.h"
#include "runtime/lookup.h"
#include "runtime/owed.h"
#include "runtime/replay.h"
#include "runtime/resident.h"
#include "runtime/swap.h"

bool is_in_recovery(const capu_context *context, const struct allocation *allocation)
{
    for (const struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        const struct guide_tensor *planned = owed_entry(context, tensor);

        /* A replay may write a part that shares its pages, too: those are the allocation's. */
        if (planned != NULL && (planned->tensor == tensor || allocation->edge_pages != NULL)) {
            return true;
        }
    }
    return false;
}

void recovery_note_freed(capu_context *context, const struct tensor *tensor)
{
    const struct guide_tensor *planned = owed_entry(context, tensor);

    if (planned != NULL && !tensor_is_managed(tensor)) {
        context->recovery.guide->tensors[tensor->guide_index].version = tensor->version;
    }
}

static capu_status fail_lost(capu_context *context, struct tensor *tensor, const char *why)
{
    return failure_set(context, CAPU_CONTENTS_LOST,
                       "'%s' was given up by the plan that this iteration left, and it cannot be "
                       "recomputed: %s",
                       lookup_name(context, tensor), why);
}

/* Whether some of it lies in always-resident memory, which cannot be sheltered from a replay. */
static bool has_fixed_part(const struct tensor *tensor)
{
    return tensor != NULL && tensor->is_defined && tensor->span_bytes != tensor->bytes;
}

/* Whether an op can be run again for a tensor: what it read is there as it was, or lost as it was.
 *missing: an input that must be recomputed first, or SIZE_MAX. */
static capu_status check_replay(capu_context *context, uint32_t wanted, uint32_t *missing)
{
    struct guide *guide = context->recovery.guide;
    struct guide_tensor *planned = &guide->tensors[wanted];
    const struct guide_op *op;

    *missing = UINT32_MAX;
    if (planned->maker == 0 || planned->version != planned->tensor->version) {
        return fail_lost(context, planned->tensor, "no op of this iteration made it");
    }
    op = &guide->ops[planned->maker - 1];
    if (!op->is_replayable) {
        return fail_lost(context, planned->tensor, "the op that made it is not replayable");
    }
    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        const struct guide_tensor *other = &guide->tensors[access->tensor];
        struct tensor *tensor = owed_tensor(context, other);
        uint64_t version = tensor != NULL ? tensor->version : other->version;
        bool is_spoilt = tensor != NULL && !tensor->is_defined; /* by an op that failed */

        if (access->role == CAPU_READ && (version != access->version || is_spoilt)) {
            return fail_lost(context, planned->tensor,
                             "what it was made from has been overwritten");
        }
        if (access->role == CAPU_READ && owed_is_lost(other)) {
            *missing = access->tensor;
        }
        /* What a replayable op updates its replays leave alone. */
        if (access->role == CAPU_WRITE && version != access->version && has_fixed_part(tensor)) {
            return fail_lost(context, planned->tensor,
                             "the op that made it would overwrite a newer small tensor");
        }
    }
    return CAPU_OK;
}

/* What a replay overwrites with older contents is kept on the host. */
static capu_status shelter(capu_context *context, struct tensor *tensor)
{
    if (!tensor->is_defined || tensor->is_zero || tensor->on_host || !tensor->on_device) {
        return CAPU_OK;
    }
    return swap_out(context, tensor, true);
}

static capu_status gather(capu_context *context, const struct guide_op *op)
{
    struct guide *guide = context->recovery.guide;
    capu_status status = CAPU_OK;

    context->operands.stamp++;
    context->operands.access_count = 0;
    context->operands.piece_count = 0;
    for (uint32_t i = 0; i < op->accesses.count && status == CAPU_OK; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        struct guide_tensor *planned = &guide->tensors[access->tensor];
        struct tensor *tensor = owed_tensor(context, planned);

        if (tensor == NULL) {
            /* A freed small one: its memory rests until the iteration ends. */
            if (access->role == CAPU_WRITE) {
                planned->version = access->version;
            }
            continue;
        }
        if (access->role != CAPU_READ && tensor->version != access->version) {
            status = shelter(context, tensor);
        }
        if (status == CAPU_OK && access_add(context, tensor, access->role) != CAPU_OK) {
            status = failure_set(context, CAPU_NO_HOST_MEMORY, "no memory for a replay");
        }
    }
    return status;
}

/* Runs an op again in passive mode. */
static capu_status run_again(capu_context *context, const struct guide_op *op)
{
    capu_status status = gather(context, op);

    if (status == CAPU_OK) {
        status = resident_make_ready(context);
    }
    if (status == CAPU_OK) {
        status = replay_run(context, context->recovery.guide, op);
        if (status != CAPU_OK) {
            owed_mark(context->recovery.guide); /* what it may have taken along is owed now, too */
        }
    }
    return status;
}

/* Recomputes one tensor, and what that takes: inputs first. Each input is older than what it is
   for, so the stack never holds a tensor twice. */
static capu_status recover(capu_context *context, uint32_t wanted)
{
    struct guide *guide = context->recovery.guide;
    uint32_t depth = 0;

    guide->stack[depth++] = wanted;
    while (depth > 0) {
        uint32_t top = guide->stack[depth - 1];
        uint32_t missing;
        capu_status status;

        if (!owed_is_lost(&guide->tensors[top])) {
            depth--;
            continue;
        }
        status = check_replay(context, top, &missing);
        if (status != CAPU_OK) {
            return status;
        }
        if (missing != UINT32_MAX) {
            guide->stack[depth++] = missing;
            continue;
        }
        status = run_again(context, &guide->ops[guide->tensors[top].maker - 1]);
        if (status != CAPU_OK) {
            return status;
        }
    }
    return CAPU_OK;
}

/* Everything that the plan would have recomputed. */
static capu_status recover_owed(capu_context *context)
{
    struct guide *guide = context->recovery.guide;

    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        if (owed_is_lost(&guide->tensors[i]) && guide->tensors[i].tensor->is_owed) {
            capu_status status = recover(context, i);

            if (status != CAPU_OK) {
                return status;
            }
        }
    }
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        guide->tensors[i].is_source = false;
    }
    return CAPU_OK;
}

capu_status recovery_before_write(capu_context *context, struct tensor *tensor)
{
    const struct guide_tensor *planned = owed_entry(context, tensor);

    return planned != NULL && planned->is_source ? recover_owed(context) : CAPU_OK;
}

capu_status recovery_prepare(capu_context *context, bool *has_run)
{
    struct operands *operands = &context->operands;
    bool overwrites = false;

    *has_run = false;
    if (context->planning == NULL) {
        return CAPU_OK; /* nothing is ever given up */
    }
    for (size_t i = 0; i < operands->access_count; i++) {
        const struct access *access = &operands->accesses[i];
        const struct guide_tensor *planned = owed_entry(context, access->tensor);

        overwrites =
            overwrites || (access->role != CAPU_READ && planned != NULL && planned->is_source);
    }
    if (overwrites) {
        *has_run = true;
        return recover_owed(context);
    }
    for (size_t i = 0; i < operands->access_count; i++) {
        const struct access *access = &operands->accesses[i];

        if (access_needs_contents(access) && tensor_is_lost(access->tensor)) {
            *has_run = true;
            if (owed_entry(context, access->tensor) == NULL) {
                return fail_lost(context, access->tensor, "it is not of this iteration any more");
            }
            return recover(context, access->tensor->guide_index);
        }
    }
    return CAPU_OK;
}

/* What is read behind iterations is kept by plans, too: so readers may count on it. */
static bool outlives_iteration(const struct tensor *tensor)
{
    return (tensor->is_persistent || tensor->is_read_after) && !tensor->allocation->is_freed;
}

capu_status recovery_finish(capu_context *context)
{
    struct guide *guide = context->recovery.guide;
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; guide != NULL && i < guide->tensor_count && status == CAPU_OK; i++) {
        if (owed_is_lost(&guide->tensors[i]) && outlives_iteration(guide->tensors[i].tensor)) {
            status = recover(context, i);
            if (status == CAPU_CONTENTS_LOST) {
                status = CAPU_OK; /* the plan had an op overwrite it: who reads it now is told */
            }
        }
    }
    if (status == CAPU_OK) {
        context->recovery.guide = NULL;
    }
    return status;
}

capu_status recovery_end_early(capu_context *context, struct tensor *tensor)
{
    capu_status status = CAPU_OK;

    if (owed_entry(context, tensor) == NULL) {
        return CAPU_OK;
    }
    status = recover_owed(context);
    if (status == CAPU_OK && tensor_is_lost(tensor)) {
        status = recover(context, tensor->guide_index);
        if (status == CAPU_CONTENTS_LOST) {
            status = CAPU_OK; /* who reads it is told */
        }
    }
    return status != CAPU_OK ? status : recovery_finish(context);
}
