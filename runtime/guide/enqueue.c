/* Enqueuing the work of a call, see enqueue.h. */
#include "runtime/guide/enqueue.h"

#include "device/marks.h"
#include "runtime/context/failure.h"
#include "runtime/guide/guided.h"

#include <string.h>

/* Uploads go through staging memory in pieces of this size. */
#define UPLOAD_PIECE ((uint64_t)8 << 20)

capu_status enqueue_stage(const struct guided *guided, uint64_t bytes, void **memory)
{
    /* Replays read this iteration's arguments again, so nothing of them may be reused. */
    bool is_kept =
        guided->iteration->is_open && (guided->active != NULL || guided->owed.guide != NULL);
    capu_status status = CAPU_OK;

    if (guided->lanes->capture.is_open) {
        return failure_check(guided->failure, capture_stage(guided->lanes, bytes, memory),
                             "taking memory for a graph");
    }
    if (!is_kept && staging_is_full(&guided->lanes->staging, bytes)) {
        status = lane_synchronize(&guided->lanes->compute);
        if (status == CAPU_OK) {
            staging_restart(&guided->lanes->staging);
        }
    }
    if (status == CAPU_OK) {
        status = staging_take(&guided->lanes->staging, bytes, memory);
    }
    return failure_check(guided->failure, status, "taking staging memory");
}

/* What a call of the program reads and writes. Without tracking, as far as its operands say. */
static uint64_t op_bytes(const struct guided *guided, const struct op *op)
{
    const struct call *call = &op->call;
    uint64_t bytes = 0;

    for (size_t i = 0; guided->settings->is_tracking && i < op->piece_count; i++) {
        bytes += marks_traffic(piece_role(op, &op->pieces[i]), op->pieces[i].bytes);
    }
    for (size_t i = 0; !guided->settings->is_tracking && i < call->operand_count; i++) {
        bytes += marks_traffic(call->operands[i].role, call->operands[i].bytes);
    }
    return bytes;
}

/* What an op that runs again reads and writes. */
static uint64_t replay_bytes(const struct guide *guide, const struct guide_op *op)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];

        bytes += marks_traffic(access->role, guide->tensors[access->tensor].bytes);
    }
    return bytes;
}

static capu_status copy_in(const struct guided *guided, struct device_copy copy)
{
    capu_status status = device_copy_in(guided->lanes->device, guided->lanes->compute.stream,
                                        copy.to, copy.from, copy.bytes);

    if (status == CAPU_OK && guided->lanes->capture.is_open) {
        status = capture_copied(guided->lanes, &copy);
    }
    return failure_check(guided->failure, status, "uploading");
}

/* Copies the caller's bytes into memory of the library, which is kept or staging memory, and from
   there on the compute stream, piece by piece. An upload that runs again finds its bytes there. */
static capu_status upload(const struct guided *guided, unsigned char *operand,
                          struct host_side host)
{
    unsigned char *to = operand + host.offset;
    uint64_t done = 0;
    capu_status status = CAPU_OK;

    while (done < host.bytes && status == CAPU_OK) {
        uint64_t now = host.bytes - done < UPLOAD_PIECE ? host.bytes - done : UPLOAD_PIECE;
        void *source = host.kept != NULL ? host.kept + done : NULL;

        if (source == NULL) {
            status = enqueue_stage(guided, now, &source);
        }
        if (status == CAPU_OK && host.memory != NULL) {
            memcpy(source, host.memory + done, now);
        }
        if (status == CAPU_OK) {
            status = copy_in(guided, (struct device_copy){to + done, source, now});
        }
        done += now;
    }
    return status;
}

/* The op has not run: its function refused to be enqueued, and the device goes on. */
static capu_status fail_run(const struct guided *guided, const struct call *call, bool is_replay,
                            capu_status status, capu_status answer)
{
    if (status == CAPU_OP_FAILED && device_failure(guided->lanes->device, NULL, 0) == CAPU_OK) {
        return failure_set(guided->failure, CAPU_DEVICE_FAILED,
                           "op '%s' could not be enqueued%s: its run function returned %s",
                           call->name, is_replay ? " again" : "", capu_status_name(answer));
    }
    return failure_check(guided->failure, status, call->name);
}

/* `is_repeated`: it is not in the record. */
static inline capu_status run(const struct guided *guided, const struct call *call,
                              const struct bound_op *bound, bool is_replay, bool is_repeated)
{
    capu_status answer = CAPU_OK;
    struct device_work work = {
        .name = call->name,
        .run = is_replay && call->replay != NULL ? call->replay : call->run,
        .arguments = bound->arguments,
        .duration_ns = bound->duration_ns,
        .answer = &answer,
        .is_repeated = is_repeated,
    };
    capu_status status = device_run(guided->lanes->device, guided->lanes->compute.stream, &work);

    return status == CAPU_OK ? CAPU_OK : fail_run(guided, call, is_replay, status, answer);
}

capu_status enqueue_op(const struct guided *guided, const struct op *op)
{
    struct bound_op bound = {.arguments = op->arguments, .duration_ns = op->duration_ns};
    capu_status status;

    marks_begin(MARK_OP, op->call.name, marks_are_on() ? op_bytes(guided, op) : 0);
    status = run(guided, &op->call, &bound, false, false);
    marks_end();
    return status;
}

capu_status enqueue_again(const struct guided *guided, const struct op *op)
{
    struct bound_op bound = {.arguments = op->arguments, .duration_ns = op->duration_ns};

    return run(guided, &op->call, &bound, true, true);
}

capu_status enqueue_transfer(const struct guided *guided, const struct call *call,
                             struct host_side host)
{
    struct device *device = guided->lanes->device;
    capu_stream stream = guided->lanes->compute.stream;
    const capu_operand *operands = call->operands;
    void *first = (void *)(uintptr_t)operands[0].address;
    uint64_t bytes = operands[0].bytes;

    switch (call->kind) {
    case CALL_UPLOAD:
        return upload(guided, first, host);
    case CALL_DOWNLOAD:
        return failure_check(guided->failure,
                             device_copy_out(device, stream, host.memory, first, bytes),
                             "downloading");
    case CALL_COPY:
        return failure_check(guided->failure,
                             device_copy_within(device, stream,
                                                (void *)(uintptr_t)operands[1].address, first,
                                                bytes),
                             "copying device memory");
    default:
        return failure_check(guided->failure, device_fill(device, stream, first, 0, bytes),
                             "filling device memory with zeros");
    }
}

capu_status enqueue_replay(const struct guided *guided, const struct guide *guide, uint32_t number)
{
    const struct guide_op *op = &guide->ops[number];
    const struct bound_op *bound = &guided->binding.ops[number];
    capu_status status;

    marks_begin(MARK_REPLAY, op->call.name, marks_are_on() ? replay_bytes(guide, op) : 0);
    status =
        op->call.kind == CALL_RUN
            ? run(guided, &op->call, bound, true, false)
            : enqueue_transfer(guided, &op->call,
                               (struct host_side){.kept = bound->kept, .bytes = bound->kept_bytes});
    marks_end();
    return status;
}
