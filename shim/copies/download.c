/*
 * Downloads to pageable memory, see download.h.
 *
 * The device copies to pinned memory of the shim's, piece by piece; the thread waits for an event
 * after each piece and copies it on, while the device copies the next one. It needs the lock only
 * to enqueue them. So another thread can launch meanwhile, and a host function that earlier work
 * waits for may depend on that. Each thread that downloads has a stage for the time of the call;
 * stages are kept for later calls and never freed.
 */
#include "shim/copies/download.h"

#include "shim/copies/copy_ends.h"
#include "shim/core/alloc.h"
#include "shim/core/core.h"
#include "shim/core/cut.h"
#include "shim/core/floor.h"
#include "shim/core/iteration.h"
#include "shim/driver/real.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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
    status = capu_download_async(core_context(), to, need.address, piece->bytes);
    while (status == CAPU_OVER_BUDGET && core_make_room()) {
        status = capu_download_async(core_context(), to, need.address, piece->bytes);
    }
    return core_settle(core_result(status, "download"));
}

static CUresult enqueue(const struct stage *stage, const struct piece *piece, CUdeviceptr from)
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

static CUresult finish(const struct stage *stage, const struct piece *piece)
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
        result = enqueue(stage, &piece, from + done);
        if (result == DRIVER_SUCCESS) {
            result = finish(stage, &pending);
            pending = piece;
            done += piece.bytes;
        }
    }
    finished = finish(stage, &pending); /* also after an error: the stage is given back */
    return result != DRIVER_SUCCESS ? result : finished;
}

/* The tensors are as the download needs them before its first piece is enqueued. */
static CUresult prepare(const void *to, CUdeviceptr from, size_t bytes)
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
        copy_ends_note((uintptr_t)to, from, false);
        cut_range(core_context(), from, bytes);
    }
    core_leave();
    return result;
}

CUresult download(void *to, CUdeviceptr from, size_t bytes)
{
    CUresult result = prepare(to, from, bytes);
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
