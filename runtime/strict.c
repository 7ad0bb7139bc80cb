/* The steps of strict mode, see strict.h. */
#include "runtime/strict.h"

#include "runtime/failure.h"

#include <string.h>

/* FNV-1a, by words: finds accidents, and need not withstand an attack. */
static uint64_t checksum(const unsigned char *bytes, uint64_t count)
{
    uint64_t sum = 14695981039346656037u;

    for (uint64_t at = 0; at < count; at += sizeof(uint64_t)) {
        uint64_t left = count - at;
        uint64_t word = 0;

        memcpy(&word, bytes + at, left < sizeof(word) ? (size_t)left : sizeof(word));
        sum = (sum ^ word) * 1099511628211u;
    }
    return sum;
}

static capu_status poison(capu_context *context, void *address, uint64_t bytes)
{
    return device_fill(context->device, context->compute.stream, address, STRICT_POISON, bytes);
}

capu_status strict_map(capu_context *context, struct tensor *tensor)
{
    capu_status status;

    if (!strict_is_on(context)) {
        return CAPU_OK;
    }
    status = device_map(context->device, tensor->span, tensor->pages, tensor->page_count);
    if (status == CAPU_OK) {
        TRACKER_ADD(context, map_count, 1);
    }
    return failure_check(context, status, "handing pages over in strict mode");
}

capu_status strict_poison_mapped(capu_context *context, const struct tensor *tensor)
{
    capu_status status;

    if (!strict_is_on(context)) {
        return CAPU_OK;
    }
    status = poison(context, tensor->span, tensor->span_bytes);
    if (status == CAPU_OK) {
        status = lane_synchronize(&context->compute);
    }
    return failure_check(context, status, "handing pages over in strict mode");
}

capu_status strict_unmap(capu_context *context, struct tensor *tensor)
{
    capu_status status;

    if (!strict_is_on(context)) {
        return CAPU_OK;
    }
    status = lane_wait(tensor->used);
    status = status == CAPU_OK ? lane_wait(tensor->left) : status;
    status = status == CAPU_OK ? lane_wait(tensor->ready) : status;
    if (status == CAPU_OK) {
        status = device_unmap(context->device, tensor->span, tensor->page_count);
        TRACKER_ADD(context, unmap_count, 1);
    }
    return failure_check(context, status, "giving pages up");
}

capu_status strict_wait_evicted(capu_context *context, struct departure *departure)
{
    return strict_is_on(context) ? departure_wait(context, departure) : CAPU_OK;
}

bool strict_has_poisoned(const capu_context *context, const struct access *access)
{
    return strict_is_on(context) && !access->is_read;
}

/* What a tensor without contents is not given by this op shows as well. */
static capu_status poison_undefined(capu_context *context)
{
    const struct operands *operands = &context->operands;
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < operands->access_count && status == CAPU_OK; i++) {
        const struct access *access = &operands->accesses[i];

        if (access->is_partial && !tensor_is_defined(access->tensor)) {
            status = poison(context, access->tensor->address, access->tensor->bytes);
        }
    }
    return status;
}

capu_status strict_poison_outputs(capu_context *context)
{
    const struct operands *operands = &context->operands;
    capu_status status;

    if (!strict_is_on(context)) {
        return CAPU_OK;
    }
    status = poison_undefined(context);
    for (size_t i = 0; i < operands->piece_count && status == CAPU_OK; i++) {
        const struct piece *piece = &operands->pieces[i];
        bool is_written = piece->role == CAPU_WRITE || piece->role == CAPU_SCRATCH;

        if (is_written && strict_has_poisoned(context, &operands->accesses[piece->access])) {
            status = poison(context, piece->address, piece->bytes);
        }
    }
    return failure_check(context, status, "poisoning the outputs of an op");
}

void strict_poison_scratch(capu_context *context)
{
    const struct operands *operands = &context->operands;

    for (size_t i = 0; strict_is_on(context) && i < operands->piece_count; i++) {
        const struct piece *piece = &operands->pieces[i];

        if (operands->accesses[piece->access].role == CAPU_SCRATCH) {
            poison(context, piece->address, piece->bytes);
        }
    }
}

capu_status strict_poison_replay(capu_context *context, const struct guide *guide,
                                 const struct guide_op *op)
{
    capu_status status = CAPU_OK;

    if (!strict_is_on(context) || op->call.kind == CALL_FILL) {
        return CAPU_OK;
    }
    for (uint32_t i = 0; i < op->accesses.count && status == CAPU_OK; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        const struct tensor *tensor = context->binding.tensors[access->tensor].tensor;

        if (access->role == CAPU_WRITE && tensor != NULL) {
            status = poison(context, tensor->address, tensor->bytes);
        }
    }
    return status;
}

static bool can_look(const capu_context *context)
{
    return strict_is_on(context) && context->is_tracking &&
           context->device->capabilities.runs_on_stream;
}

/* Whether the op only reads it, in all of its operands. */
static bool is_only_read(const struct access *access)
{
    return access->role == CAPU_READ;
}

capu_status strict_begin(capu_context *context)
{
    struct operands *operands = &context->operands;
    capu_status status;

    if (!can_look(context)) {
        return CAPU_OK;
    }
    status = lane_synchronize(&context->compute);
    for (size_t i = 0; i < operands->access_count && status == CAPU_OK; i++) {
        struct access *access = &operands->accesses[i];

        if (is_only_read(access)) {
            access->checksum = checksum(access->tensor->address, access->tensor->bytes);
        }
    }
    return failure_check(context, status, "waiting for memory to look at in strict mode");
}

struct tensor *strict_changed(capu_context *context)
{
    const struct operands *operands = &context->operands;

    /* A failure of the op is reported by the next call that meets it. */
    if (!can_look(context) || lane_synchronize(&context->compute) != CAPU_OK) {
        return NULL;
    }
    for (size_t i = 0; i < operands->access_count; i++) {
        const struct access *access = &operands->accesses[i];

        if (is_only_read(access) &&
            checksum(access->tensor->address, access->tensor->bytes) != access->checksum) {
            return access->tensor;
        }
    }
    return NULL;
}
