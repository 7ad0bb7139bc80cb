/* What strict mode finds by looking at memory: where ops compute on the host, it can be read. */
#include "runtime/failure.h"
#include "runtime/internal.h"

#include <string.h>

/* FNV-1a, by words: every word counts, and it need not withstand anybody. */
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

static bool can_look(const capu_context *context)
{
    return context->config.strict != 0 && context->is_tracking &&
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

    /* A failure of the op is told by the next call that meets it. */
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
