/*
 * Copies. The bytes of pageable host memory are read during the call, as the driver reads them, so
 * they are uploads and downloads of the library, which work tensor by tensor. Pinned memory may
 * still be written by earlier work of the program when the call is made: there the driver's own
 * asynchronous copy is enqueued, inside an access.
 */
#include "shim/copies/copy.h"

#include "shim/core/alloc.h"
#include "shim/core/capture.h"
#include "shim/core/code.h"
#include "shim/core/core.h"
#include "shim/core/cut.h"
#include "shim/core/floor.h"
#include "shim/core/iteration.h"
#include "shim/core/operands.h"
#include "shim/driver/real.h"
#include "shim/graph/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

bool copy_is_pageable(uint64_t address)
{
    unsigned type = 0;

    return real_calls()->cuPointerGetAttribute(&type, POINTER_MEMORY_TYPE, address) !=
           DRIVER_SUCCESS;
}

bool copy_is_visible(uint64_t address)
{
    unsigned type = 0;
    unsigned is_managed = 0;

    return real_calls()->cuPointerGetAttribute(&type, POINTER_MEMORY_TYPE, address) !=
               DRIVER_SUCCESS ||
           type == MEMORY_HOST ||
           (real_calls()->cuPointerGetAttribute(&is_managed, POINTER_IS_MANAGED, address) ==
                DRIVER_SUCCESS &&
            is_managed != 0);
}

void copy_note(uint64_t to, uint64_t from, bool is_from_host)
{
    const struct allocation *source = alloc_find(from);
    uint64_t pointers = operands_note_pointer(0, to);

    /* What the host looks at may be elsewhere each time, such as the element with the largest
       number. */
    pointers = operands_note_pointer(
        pointers, source != NULL && alloc_find(to) == NULL ? source->address : from);
    iteration_event(core_context(), is_from_host ? "copy from the host" : "copy",
                    is_from_host ? PERIOD_COPY_IN : PERIOD_OTHER, pointers);
}

/*
 * Downloads to pageable memory.
 *
 * The device copies to pinned memory of the shim's, piece by piece; the thread waits for an event
 * after each piece and copies it on, while the device copies the next one. It needs the lock only
 * to enqueue them. So another thread can launch meanwhile, and a host function that earlier work
 * waits for may depend on that. Each thread that downloads has a stage for the time of the call;
 * stages are kept for later calls and never freed.
 */

enum { PIECE_BYTES = 2 << 20, HALVES = 2, EVENT_NO_TIMING = 2 };

struct stage {
    struct stage *next;
    unsigned char *memory; /* HALVES pieces */
    CUevent events[HALVES];
};

/* The stages that no thread uses. */
static struct {
    pthread_mutex_t lock;
    struct stage *first;
} stages = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* NULL: no memory. */
static struct stage *make_stage(void)
{
    const struct real_calls *real = real_calls();
    struct stage *stage = calloc(1, sizeof(*stage));
    size_t count = 0;

    if (stage == NULL) {
        return NULL;
    }
    while (count < HALVES &&
           real->cuEventCreate(&stage->events[count], EVENT_NO_TIMING) == DRIVER_SUCCESS) {
        count++;
    }
    if (count == HALVES &&
        real->cuMemAllocHost_v2((void **)&stage->memory, (size_t)HALVES * PIECE_BYTES) ==
            DRIVER_SUCCESS) {
        return stage;
    }
    while (count > 0) {
        (void)real->cuEventDestroy_v2(stage->events[--count]);
    }
    free(stage);
    return NULL;
}

static struct stage *take_stage(void)
{
    struct stage *stage;

    (void)pthread_mutex_lock(&stages.lock);
    stage = stages.first;
    if (stage != NULL) {
        stages.first = stage->next;
    }
    (void)pthread_mutex_unlock(&stages.lock);
    return stage != NULL ? stage : make_stage();
}

static void give_stage(struct stage *stage)
{
    (void)pthread_mutex_lock(&stages.lock);
    stage->next = stages.first;
    stages.first = stage;
    (void)pthread_mutex_unlock(&stages.lock);
}

struct piece {
    unsigned char *to;
    size_t bytes; /* 0: none */
    size_t half;
};

static CUresult enqueue_inside(const struct stage *stage, const struct piece *piece,
                               CUdeviceptr from)
{
    const struct allocation *allocation = alloc_find(from);
    capu_operand need = {.address = (void *)(uintptr_t)from, .bytes = piece->bytes};
    void *to = stage->memory + piece->half * PIECE_BYTES;
    capu_status status;

    if (allocation == NULL || piece->bytes > allocation->bytes - (from - allocation->address)) {
        return DRIVER_INVALID_VALUE;
    }
    floor_note(core_context(), &need, 1);
    status = capu_download(core_context(), to, need.address, piece->bytes, CAPU_TRANSFER_ASYNC);
    while (status == CAPU_OVER_BUDGET && core_make_room()) {
        status = capu_download(core_context(), to, need.address, piece->bytes, CAPU_TRANSFER_ASYNC);
    }
    return core_settle(core_result(status, "download"));
}

static CUresult enqueue_piece(const struct stage *stage, const struct piece *piece,
                              CUdeviceptr from)
{
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    result = enqueue_inside(stage, piece, from);
    if (result == DRIVER_SUCCESS) {
        result = real_calls()->cuEventRecord(stage->events[piece->half], core_stream(NULL));
    }
    core_leave();
    return result;
}

static CUresult finish_piece(const struct stage *stage, const struct piece *piece)
{
    uint64_t begun;
    CUresult result;

    if (piece->bytes == 0) {
        return DRIVER_SUCCESS;
    }
    begun = iteration_wait_begin();
    result = real_calls()->cuEventSynchronize(stage->events[piece->half]);
    iteration_wait_end(begun);
    if (result == DRIVER_SUCCESS) {
        memcpy(piece->to, stage->memory + piece->half * PIECE_BYTES, piece->bytes);
    }
    return result;
}

static CUresult download_by(const struct stage *stage, unsigned char *to, CUdeviceptr from,
                            size_t bytes)
{
    struct piece pending = {0};
    size_t done = 0;
    CUresult result = DRIVER_SUCCESS;
    CUresult finished;

    while (done < bytes && result == DRIVER_SUCCESS) {
        struct piece piece = {to + done, bytes - done, done / PIECE_BYTES % HALVES};

        piece.bytes = piece.bytes < PIECE_BYTES ? piece.bytes : PIECE_BYTES;
        result = enqueue_piece(stage, &piece, from + done);
        if (result == DRIVER_SUCCESS) {
            result = finish_piece(stage, &pending);
            pending = piece;
            done += piece.bytes;
        }
    }
    finished = finish_piece(stage, &pending); /* also after an error: the stage is given back */
    return result != DRIVER_SUCCESS ? result : finished;
}

/* The tensors are as the download needs them before its first piece is enqueued. */
static CUresult prepare_download(const void *to, CUdeviceptr from, size_t bytes)
{
    const struct allocation *allocation;
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    allocation = alloc_find(from);
    if (allocation == NULL || bytes > allocation->bytes - (from - allocation->address)) {
        result = DRIVER_INVALID_VALUE;
    } else {
        copy_note((uintptr_t)to, from, false);
        cut_range(core_context(), from, bytes);
    }
    core_leave();
    return result;
}

/* Copies memory of the program's allocations to pageable memory, after all work that was enqueued
   before, and waits for it, but not with the core's lock. Pre: the core was not entered. Errors:
   INVALID_VALUE: not inside one allocation. */
static CUresult download(void *to, CUdeviceptr from, size_t bytes)
{
    CUresult result = prepare_download(to, from, bytes);
    struct stage *stage;

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    stage = take_stage();
    if (stage == NULL) {
        return DRIVER_OUT_OF_MEMORY;
    }
    result = download_by(stage, to, from, bytes);
    give_stage(stage);
    return result;
}

struct copy {
    uint64_t to;
    uint64_t from;
    size_t bytes;
    CUstream stream; /* of the program */
    bool waits;
};

static bool reaches_out(const struct allocation *allocation, uint64_t address, size_t bytes)
{
    return allocation != NULL && bytes > allocation->bytes - (address - allocation->address);
}

/* Neither end is ours. */
static CUresult copy_others(const struct copy *copy)
{
    CUstream stream = core_stream(copy->stream);
    CUresult result = real_calls()->cuMemcpyAsync(copy->to, copy->from, copy->bytes, stream);

    if (!copy_is_pageable(copy->to)) {
        code_note_stored(); /* it may be a variable */
    }
    return result == DRIVER_SUCCESS && copy->waits ? real_calls()->cuStreamSynchronize(stream)
                                                   : result;
}

static CUresult copy_by_driver(const struct copy *copy, bool to_is_ours, bool from_is_ours)
{
    static const char name[] = "copy";
    struct operands operands = {0};
    CUresult result;

    if (to_is_ours) {
        operands_put(&operands, copy->to, copy->bytes, CAPU_WRITE);
    }
    if (from_is_ours) {
        operands_put(&operands, copy->from, copy->bytes, CAPU_READ);
    }
    operands_loosen(&operands);
    result = core_begin(&operands, name);
    operands_finish(&operands);
    if (result == DRIVER_SUCCESS) {
        result = core_end(real_calls()->cuMemcpyAsync(copy->to, copy->from, copy->bytes,
                                                      core_stream(copy->stream)),
                          name);
    }
    return result;
}

/* What the library's own copies need. */
static void note_need(const struct copy *copy, bool to_is_ours, bool from_is_ours)
{
    capu_operand ends[2];
    size_t count = 0;

    if (to_is_ours) {
        ends[count++] =
            (capu_operand){.address = (void *)(uintptr_t)copy->to, .bytes = copy->bytes};
    }
    if (from_is_ours) {
        ends[count++] =
            (capu_operand){.address = (void *)(uintptr_t)copy->from, .bytes = copy->bytes};
    }
    floor_note(core_context(), ends, count);
}

/* An upload, or a copy on the device, by the library. */
static capu_status copy_once(const struct copy *copy, bool from_is_ours)
{
    void *to = (void *)(uintptr_t)copy->to;
    const void *from = (const void *)(uintptr_t)copy->from;

    return from_is_ours ? capu_copy(core_context(), to, from, copy->bytes)
                        : capu_upload(core_context(), to, from, copy->bytes, 0);
}

static CUresult copy_by_library(const struct copy *copy, bool from_is_ours)
{
    capu_status status = copy_once(copy, from_is_ours);

    while (status == CAPU_OVER_BUDGET && core_make_room()) {
        status = copy_once(copy, from_is_ours);
    }
    return core_result(status, from_is_ours ? "copy on the device" : "upload");
}

/* Whether the library copies: tensor by tensor, so that what is large needs little room. Parts of
   data go by the driver, in an access with the same operands for all parts, if there is room. */
static bool is_by_library(const struct copy *copy, bool to_is_ours, bool from_is_ours)
{
    uint64_t budget = capu_context_config(core_context())->budget_bytes;

    if (to_is_ours && from_is_ours) {
        return !operands_is_data(copy->from) ||
               operands_tensor_bytes(copy->to, copy->bytes) +
                       operands_tensor_bytes(copy->from, copy->bytes) >
                   budget / 2;
    }
    return to_is_ours && copy_is_pageable(copy->from);
}

/* At least one end is ours; if only what is read is, the other end is not pageable. */
static CUresult copy_own(const struct copy *copy, const struct allocation *to,
                         const struct allocation *from)
{
    if (reaches_out(to, copy->to, copy->bytes) || reaches_out(from, copy->from, copy->bytes)) {
        return DRIVER_INVALID_VALUE;
    }
    copy_note(copy->to, copy->from, from == NULL);
    if (to != NULL) {
        cut_range(core_context(), copy->to, copy->bytes);
    }
    if (from != NULL && !operands_is_data(copy->from)) {
        cut_range(core_context(), copy->from, copy->bytes);
    }
    note_need(copy, to != NULL, from != NULL);
    return is_by_library(copy, to != NULL, from != NULL)
               ? copy_by_library(copy, from != NULL)
               : copy_by_driver(copy, to != NULL, from != NULL);
}

/* Uploads go through memory of the library, which it waits for once that is full. This much waits
   for earlier work before it takes the lock, and so only for itself inside. */
enum { LARGE_UPLOAD_BYTES = 1 << 20 };

static CUresult wait_before(const struct copy *copy)
{
    return copy->bytes >= LARGE_UPLOAD_BYTES && copy_is_pageable(copy->from) ? core_wait()
                                                                             : DRIVER_SUCCESS;
}

static bool is_ours(uint64_t address, CUresult *result)
{
    bool found = false;

    *result = core_enter();
    if (*result == DRIVER_SUCCESS) {
        found = alloc_find(address) != NULL;
        core_leave();
    }
    return found;
}

/* Pre: entered, which ends here. */
static CUresult carry_out_inside(const struct copy *copy)
{
    const struct allocation *to = alloc_find(copy->to);
    const struct allocation *from = alloc_find(copy->from);
    CUresult result;

    if (to == NULL && from == NULL) {
        core_leave();
        return copy_others(copy);
    }
    result = core_settle(copy_own(copy, to, from));
    core_leave();
    return result == DRIVER_SUCCESS && copy->waits ? core_wait() : result;
}

static CUresult carry_out(const struct copy *copy)
{
    CUresult result;

    if (copy->bytes == 0) {
        return DRIVER_SUCCESS;
    }
    if (capture_takes(copy->stream)) {
        return copy->waits ? real_calls()->cuMemcpy(copy->to, copy->from, copy->bytes)
                           : graph_capture_copy(copy->to, copy->from, copy->bytes, copy->stream);
    }
    if (is_ours(copy->from, &result)) {
        if (copy_is_pageable(copy->to) && !is_ours(copy->to, &result)) {
            return download((void *)(uintptr_t)copy->to, copy->from, copy->bytes);
        }
    } else if (result == DRIVER_SUCCESS) {
        result = wait_before(copy);
    }
    if (result == DRIVER_SUCCESS) {
        result = core_enter();
    }
    return result == DRIVER_SUCCESS ? carry_out_inside(copy) : result;
}

static CUresult copy_linear(uint64_t to, uint64_t from, size_t bytes, CUstream stream)
{
    return carry_out(&(struct copy){to, from, bytes, stream, false});
}

static CUresult copy_linear_now(uint64_t to, uint64_t from, size_t bytes)
{
    return carry_out(&(struct copy){to, from, bytes, NULL, true});
}

CUresult on_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_linear_now(to, from, bytes);
}

CUresult on_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return copy_linear_now(to, (uintptr_t)from, bytes);
}

CUresult on_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return copy_linear_now((uintptr_t)to, from, bytes);
}

CUresult on_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_linear_now(to, from, bytes);
}

CUresult on_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_linear(to, from, bytes, stream);
}

CUresult on_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy_linear(to, (uintptr_t)from, bytes, stream);
}

CUresult on_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_linear((uintptr_t)to, from, bytes, stream);
}

CUresult on_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_linear(to, from, bytes, stream);
}
