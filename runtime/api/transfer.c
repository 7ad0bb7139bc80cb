/*
 * Moving bytes in and out by the user's order: capu_zero, capu_upload, capu_download, capu_copy.
 *
 * A range that covers several tensors is worked off tensor by tensor, so that filling or reading a
 * blob never needs more room than its largest tensor.
 */
#include "runtime/api/context.h"
#include "runtime/context/failure.h"
#include "runtime/follow/executor.h"
#include "runtime/follow/recovery.h"
#include "runtime/issue/issue.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/tensor/memory.h"

#include <string.h>

/* The part of a range that lies in one tensor. */
struct part {
    struct tensor *tensor;
    unsigned char *address;
    uint64_t bytes;
    uint64_t offset; /* of it in the range */
};

typedef capu_status (*part_function)(capu_context *context, const struct part *part, void *data);

/* Whether the whole range lies in one allocation; `bytes` 0 becomes the rest of the tensor. */
static capu_status check_range(capu_context *context, const char *call, const void *address,
                               uint64_t *bytes, struct tensor **first)
{
    const struct allocation *allocation;
    uint64_t left;
    capu_status status = lookup_tensor(&context->memory, address, call, first);

    if (status != CAPU_OK) {
        return status;
    }
    if (*bytes == 0) {
        *bytes = (uint64_t)(tensor_end(*first) - (const unsigned char *)address);
    }
    allocation = (*first)->allocation;
    left = allocation->bytes -
           (uint64_t)((const unsigned char *)address - (unsigned char *)allocation->address);
    if (*bytes > left) {
        return failure_set(&context->failure, CAPU_WRONG_ADDRESS,
                           "%s: %llu bytes at %p, in '%s', reach %llu bytes past the end of the "
                           "allocation",
                           call, (unsigned long long)*bytes, address,
                           lookup_name(&context->memory, *first),
                           (unsigned long long)(*bytes - left));
    }
    return CAPU_OK;
}

/* Calls `work` for each tensor that the range overlaps, in address order. */
static capu_status for_each_part(capu_context *context, const char *call, const void *address,
                                 uint64_t bytes, part_function work, void *data)
{
    struct part part = {.address = (unsigned char *)(uintptr_t)address};
    struct tensor *tensor;
    capu_status status = check_range(context, call, address, &bytes, &tensor);

    while (status == CAPU_OK && part.offset < bytes) {
        part.tensor = tensor;
        part.bytes = (uint64_t)(tensor_end(tensor) - part.address);
        if (part.bytes > bytes - part.offset) {
            part.bytes = bytes - part.offset;
        }
        tensor = tensor->next;
        status = work(context, &part, data);
        part.address += part.bytes;
        part.offset += part.bytes;
    }
    return status;
}

/* Issues a call of the library's own on one part; `host`: where it comes from or goes to. */
static capu_status issue_part(capu_context *context, struct call call, const struct part *part,
                              capu_role role, struct host_side host)
{
    capu_operand operand = capu_operand_of(part->address, part->bytes, role);

    call.operands = &operand;
    call.operand_count = 1;
    context->op.call = call;
    return issue_transfer(context, &context->op, host);
}

static capu_status fill_range(capu_context *context, const void *from, const void *to)
{
    size_t bytes = (size_t)((const unsigned char *)to - (const unsigned char *)from);

    if (bytes == 0) {
        return CAPU_OK;
    }
    return failure_check(&context->failure,
                         device_fill(context->lanes.device, context->lanes.compute.stream,
                                     (void *)(uintptr_t)from, 0, bytes),
                         "filling device memory with zeros");
}

/* The tensor is known to be zero from here on; its always-resident ends are filled at once. */
static capu_status make_known_zero(capu_context *context, struct tensor *tensor)
{
    unsigned char *span_end = (unsigned char *)tensor->span + tensor->span_bytes;
    /* First of all, since replays also read the always-resident ends. */
    capu_status status = executor_before_zero(&context->following, tensor);

    if (status == CAPU_OK) {
        status = recovery_before_write(&context->following, tensor);
    }
    if (status == CAPU_OK) {
        status = fill_range(context, tensor->address, tensor->span);
    }
    if (status == CAPU_OK) {
        tensor->version++; /* even if the device refuses the other end */
        status = fill_range(context, span_end, tensor_end(tensor));
    }
    if (status == CAPU_OK && tensor->span_bytes != tensor->bytes &&
        tracker_mark_end(&context->records, &tensor->used) != CAPU_OK) {
        capture_give_up(&context->lanes, "zeros cannot be marked");
        status = failure_check(&context->failure, lane_synchronize(&context->lanes.compute),
                               "waiting for zeros");
    }
    if (status != CAPU_OK) {
        return status;
    }
    tracker_zeroed(&context->records, tensor);
    tensor_state_zeroed(tensor);
    swap_give_block(&context->residency, tensor);
    tensor->zeroed = context->iteration.number;
    contents_define(&context->residency, tensor);
    victims_touch(&context->residency, tensor);
    capture_zeroed(&context->lanes, tensor);
    return CAPU_OK;
}

static capu_status zero_part(capu_context *context, const struct part *part, void *data)
{
    (void)data;
    if (context->settings.is_paging && tensor_is_managed(part->tensor) &&
        part->bytes == part->tensor->bytes) {
        return make_known_zero(context, part->tensor);
    }
    return issue_part(context,
                      (struct call){.kind = CALL_ZERO, .name = "capu_zero", .is_replayable = true},
                      part, CAPU_WRITE, (struct host_side){0});
}

capu_status capu_zero(capu_context *context, void *address, size_t bytes)
{
    capu_status status = context_ready(&context, "capu_zero");

    return status != CAPU_OK ? status
                             : for_each_part(context, "capu_zero", address, bytes, zero_part, NULL);
}

/* What an upload copies, and whether the rest of the tensors it meets is not needed any more. */
struct upload {
    unsigned char *from;
    bool discards;
};

/* The upload of a whole tensor can run again where its bytes are kept. So can one that discards the
   rest of its tensor, which counts as written whole however many bytes there are, so that plans
   serve all of them. Without plans no upload ever runs again, and the record says what a plan could
   rely on. A tensor that is always resident is never lost. */
static capu_status upload_part(capu_context *context, const struct part *part, void *data)
{
    const struct upload *upload = data;
    struct part written = *part;
    struct host_side host = {.memory = upload->from + part->offset, .bytes = part->bytes};
    bool is_whole;

    if (upload->discards) {
        written.address = part->tensor->address;
        written.bytes = part->tensor->bytes;
    }
    host.offset = (uint64_t)(part->address - written.address);
    is_whole =
        tensor_is_managed(part->tensor) && written.bytes == part->tensor->bytes && host.offset == 0;
    host.kept = is_whole ? uploads_take(&context->residency, part->bytes) : NULL;

    return issue_part(context,
                      (struct call){.kind = CALL_UPLOAD,
                                    .name = "capu_upload",
                                    .is_replayable = context->plans.keeper != NULL
                                                         ? host.kept != NULL
                                                         : is_whole},
                      &written, CAPU_WRITE, host);
}

/* Rejects flags other than the one that the call knows. */
static capu_status check_flags(capu_context *context, const char *call, uint32_t flags,
                               uint32_t known)
{
    if ((flags & ~known) == 0) {
        return CAPU_OK;
    }
    return failure_set(&context->failure, CAPU_INVALID, "%s: unknown flags 0x%x", call,
                       flags & ~known);
}

/* The checks that uploads, downloads and copies share. */
static capu_status check_transfer(capu_context **context, const char *call, const void *to,
                                  const void *from, size_t bytes)
{
    capu_status status = context_ready(context, call);

    if (status != CAPU_OK) {
        return status;
    }
    if (bytes == 0) {
        return failure_set(&(*context)->failure, CAPU_INVALID, "%s of zero bytes", call);
    }
    if (to == NULL || from == NULL) {
        return failure_set(&(*context)->failure, CAPU_INVALID, "%s: no address was given", call);
    }
    return CAPU_OK;
}

capu_status capu_upload(capu_context *context, void *to, const void *from, size_t bytes,
                        uint32_t flags)
{
    struct upload upload = {.from = (void *)(uintptr_t)from,
                            .discards = (flags & CAPU_TRANSFER_REST_UNDEFINED) != 0};
    capu_status status = check_transfer(&context, "capu_upload", to, from, bytes);

    if (status == CAPU_OK) {
        status = check_flags(context, "capu_upload", flags, CAPU_TRANSFER_REST_UNDEFINED);
    }
    return status != CAPU_OK
               ? status
               : for_each_part(context, "capu_upload", to, bytes, upload_part, &upload);
}

/* Whether the tensor can be read without bringing it back: all of it is evicted, and has a host
 * copy.
 */
static bool is_readable_on_host(const struct tensor *tensor)
{
    return tensor_is_defined(tensor) && !tensor_on_device(tensor) &&
           (tensor_on_host(tensor) || tensor_is_zero(tensor)) &&
           tensor->span_bytes == tensor->bytes;
}

/* Reads a part from the tensor's host copy, which has one or more extents. */
static void read_extents(const struct part *part, unsigned char *to)
{
    const struct host_block *block = &part->tensor->host;
    uint64_t skip = (uint64_t)(part->address - (unsigned char *)part->tensor->address);
    uint64_t left = part->bytes;

    for (size_t i = 0; i < block->extent_count && left > 0; i++) {
        const struct host_extent *extent = i == 0 ? &block->first : &block->more[i - 1];
        uint64_t here = extent->bytes > skip ? extent->bytes - skip : 0;

        here = here < left ? here : left;
        memcpy(to, (const unsigned char *)extent->address + skip, here);
        skip = here > 0 ? 0 : skip - extent->bytes;
        to += here;
        left -= here;
    }
}

static capu_status read_on_host(capu_context *context, const struct part *part, unsigned char *to)
{
    struct lane_position now;
    capu_status status = lane_wait(part->tensor->left);
    struct call call = {.kind = CALL_DOWNLOAD, .name = "capu_download"};
    capu_operand operand = capu_operand_of(part->address, part->bytes, CAPU_READ);
    size_t op;

    call.operands = &operand;
    call.operand_count = 1;
    if (status == CAPU_OK && !context->iteration.is_open) {
        status = operands_note_visit(context, part->tensor);
    }
    if (status == CAPU_OK && tensor_is_zero(part->tensor)) {
        memset(to, 0, part->bytes); /* nothing was ever written, so this is not even an access */
        return CAPU_OK;
    }
    if (status == CAPU_OK) {
        status = lane_mark(&context->lanes.compute, &now);
    }
    if (status == CAPU_OK && tracker_reserve(&context->records, 1, 1, 0) != CAPU_OK) {
        status = CAPU_NO_HOST_MEMORY;
    }
    if (status != CAPU_OK) {
        return failure_check(&context->failure, status, "reading a host copy");
    }
    read_extents(part, to);
    traffic_begin_op(&context->records.traffic);
    op = tracker_op(&context->records, &call, false);
    tracker_access(&context->records, part->tensor, CAPU_READ);
    tracker_marks(&context->records, op, &call, now, now);
    return settle_call(context);
}

static capu_status download_part(capu_context *context, const struct part *part, void *data)
{
    unsigned char *to = (unsigned char *)data + part->offset;
    bool is_guided = context->guided.active != NULL && context->iteration.is_open;

    /* A planned download is an op like any other: the guide has its tensor resident by then. */
    if (!is_guided && is_readable_on_host(part->tensor)) {
        return read_on_host(context, part, to);
    }
    return issue_part(context, (struct call){.kind = CALL_DOWNLOAD, .name = "capu_download"}, part,
                      CAPU_READ, (struct host_side){.memory = to});
}

capu_status capu_download(capu_context *context, void *to, const void *from, size_t bytes,
                          uint32_t flags)
{
    capu_status status = context_uncaptured(&context, "capu_download");

    if (status == CAPU_OK) {
        status = check_transfer(&context, "capu_download", to, from, bytes);
    }
    if (status == CAPU_OK) {
        status = check_flags(context, "capu_download", flags, CAPU_TRANSFER_ASYNC);
    }
    if (status != CAPU_OK) {
        return status;
    }
    status = for_each_part(context, "capu_download", from, bytes, download_part, to);
    if (status != CAPU_OK) {
        lanes_quiesce(
            &context->lanes,
            &context->lanes.compute); /* earlier parts may still write to the caller's memory */
        return status;
    }
    return (flags & CAPU_TRANSFER_ASYNC) != 0
               ? CAPU_OK
               : failure_check(&context->failure, lane_synchronize(&context->lanes.compute),
                               "waiting for a download");
}

capu_status capu_copy(capu_context *context, void *to, const void *from, size_t bytes)
{
    capu_operand list[2] = {capu_operand_of(from, bytes, CAPU_READ),
                            capu_operand_of(to, bytes, CAPU_WRITE)};
    struct call call = {.kind = CALL_COPY,
                        .name = "capu_copy",
                        .is_replayable = true,
                        .operands = list,
                        .operand_count = 2};
    capu_status status = check_transfer(&context, "capu_copy", to, from, bytes);
    uint64_t length = bytes;
    struct tensor *tensor;

    if (status == CAPU_OK) {
        status = check_range(context, "capu_copy", from, &length, &tensor);
    }
    if (status == CAPU_OK) {
        status = check_range(context, "capu_copy", to, &length, &tensor);
    }
    if (status != CAPU_OK) {
        return status;
    }
    if ((uintptr_t)to < (uintptr_t)from + bytes && (uintptr_t)from < (uintptr_t)to + bytes) {
        return failure_set(&context->failure, CAPU_INVALID, "capu_copy: the ranges overlap");
    }
    context->op.call = call;
    return issue_transfer(context, &context->op, (struct host_side){0});
}
