/*
 * Streams, events and work, over those of the host device.
 *
 * Copies, fills and kernels are items of their stream. An item checks its memory only when it runs.
 * If it has no access, the device is lost at that time, as with a real copy or kernel, and every
 * call returns the error from then on.
 */
#include "tests/fake_cudart/streams.h"
#include "tests/ptx/include/driver_rules.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STREAMS_MAX = 256 }; /* more than any test has at once */

void fake_drain(void)
{
    capu_stream streams[STREAMS_MAX];
    size_t count = 0;

    fake_lock();
    for (const struct CUstream_st *at = fake.streams; at != NULL && count < STREAMS_MAX;
         at = at->next) {
        streams[count++] = at->host;
    }
    count += fake_graphs_lanes(streams + count, STREAMS_MAX - count);
    fake_unlock();
    for (size_t index = 0; index < count; index++) {
        (void)device_stream_synchronize(fake.host, streams[index]);
    }
}

/* Whether the item's device memory is accessible, and its host memory still pinned if it was. */
static bool can_touch(const struct item *item)
{
    bool can = true;

    fake_lock();
    if (item->kind == ITEM_SET || item->direction != cudaMemcpyDeviceToHost) {
        can = fake_has_access(item->to, item->bytes);
    }
    if (item->kind == ITEM_COPY && item->direction != cudaMemcpyHostToDevice) {
        can = can && fake_has_access(item->from, item->bytes);
    }
    can = can && (item->pinned == NULL || fake_is_pinned(item->pinned, item->bytes));
    fake_unlock();
    return can;
}

/* What a stream can wait for. Pre: the lock is held. */
static bool can_wait_for(const void *address)
{
    return fake_is_pinned(address, sizeof(uint32_t)) || fake_has_access(address, sizeof(uint32_t));
}

static bool has_value(const struct item *item)
{
    uint32_t now = __atomic_load_n((const uint32_t *)item->to, __ATOMIC_ACQUIRE);

    return driver_is_waited_for(now, item->value, item->flags);
}

/* Waits for the value. False: the device was lost meanwhile, or the memory has gone. */
static bool wait_for_value(const struct item *item)
{
    const struct timespec pause = {.tv_nsec = 20000};

    for (;;) {
        bool can_go_on;
        bool is_there = false;

        fake_lock();
        can_go_on = fake.sticky == 0 && can_wait_for(item->to);
        is_there = can_go_on && has_value(item);
        fake_unlock();
        if (is_there || !can_go_on) {
            return is_there;
        }
        nanosleep(&pause, NULL);
    }
}

/* Runs on the stream's thread. */
static capu_status execute(capu_stream stream, const void *arguments)
{
    struct item *item = (struct item *)(uintptr_t)arguments;
    capu_status status = CAPU_OK;

    (void)stream;
    if (item->kind == ITEM_KERNEL) {
        status = item->kernel(item->stream, item->arguments);
    } else if (item->kind == ITEM_WAIT) {
        status = wait_for_value(item) ? CAPU_OK : CAPU_DEVICE_LOST;
    } else if (!can_touch(item)) {
        status = CAPU_DEVICE_LOST;
    } else if (item->kind == ITEM_COPY) {
        memmove(item->to, item->from, item->bytes);
    } else {
        memset(item->to, item->byte, item->bytes);
    }
    if (status != CAPU_OK) {
        fake_lose(item->kind == ITEM_KERNEL ? cudaErrorLaunchFailure : cudaErrorIllegalAddress);
    }
    atomic_store(&item->is_done, true);
    return status;
}

/* Translates a status of the host device into a CUDA error. A failure of the device is the error
   with which it was lost. */
int fake_error_of(capu_status status)
{
    int error = 0;

    switch (status) {
    case CAPU_OK:
        break;
    case CAPU_NOT_READY:
        error = cudaErrorNotReady;
        break;
    case CAPU_NO_HOST_MEMORY:
        error = cudaErrorMemoryAllocation;
        break;
    default:
        fake_lock();
        error = fake.sticky != 0 ? fake.sticky : cudaErrorUnknown;
        fake_unlock();
        break;
    }
    return error;
}

/* Frees the items that have run. */
static void reap(struct item_list *list)
{
    while (list->first != NULL && atomic_load(&list->first->is_done)) {
        struct item *next = list->first->next;

        free(list->first);
        list->first = next;
    }
}

void fake_items_free(struct item_list *list)
{
    while (list->first != NULL) {
        struct item *next = list->first->next;

        free(list->first);
        list->first = next;
    }
}

int fake_issue(capu_stream host, struct item_list *list, const struct item *wanted)
{
    struct device_work work = {.name = "fake", .run = execute};
    struct item *item = malloc(sizeof(*item));
    capu_status status;

    if (item == NULL) {
        return cudaErrorMemoryAllocation;
    }
    memcpy(item, wanted, sizeof(*item));
    item->next = NULL;
    work.arguments = item;
    status = device_run(fake.host, host, &work);
    if (status != CAPU_OK) {
        free(item);
        return fake_error_of(status);
    }
    reap(list);
    if (list->first == NULL) {
        list->first = item;
    } else {
        list->last->next = item;
    }
    list->last = item;
    return 0;
}

static int issue(cudaStream_t stream, struct item *item)
{
    int error;

    item->stream = stream;
    return fake_captures(stream, item, &error) ? error
                                               : fake_issue(stream->host, &stream->items, item);
}

capu_status fake_cudart_launch(capu_stream stream, capu_run_function kernel, const void *arguments)
{
    struct item item = {.kind = ITEM_KERNEL, .kernel = kernel, .arguments = arguments};

    return issue(stream, &item) == 0 ? CAPU_OK : CAPU_DEVICE_FAILED;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    struct CUstream_st *made;
    capu_status status;

    FAKE_RUNTIME_ENTER(cudaStreamCreateWithFlags);
    if ((flags & ~(unsigned)cudaStreamNonBlocking) != 0) {
        return fake_leave(cudaErrorInvalidValue);
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return fake_leave(cudaErrorMemoryAllocation);
    }
    status = device_stream_create(fake.host, DEVICE_COMPUTE, &made->host);
    if (status != CAPU_OK) {
        free(made);
        return fake_leave(cudaErrorMemoryAllocation);
    }
    made->device = fake_current();
    fake_lock();
    made->next = fake.streams;
    fake.streams = made;
    fake_unlock();
    *stream = made;
    return cudaSuccess;
}

static void free_stream(struct CUstream_st *stream)
{
    struct CUstream_st **link = &fake.streams;

    fake_lock();
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    fake_unlock();
    device_stream_destroy(fake.host, stream->host);
    fake_items_free(&stream->items); /* on a lost device some have not run and never will */
    fake_nodes_free(&stream->tail);
    free(stream);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    FAKE_RUNTIME_ENTER(cudaStreamDestroy);
    fake_capture_lose_stream(stream);
    free_stream(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    int error;

    FAKE_RUNTIME_ENTER(cudaStreamSynchronize);
    error = fake_capture_forbids_stream(stream);
    if (error != 0) {
        return fake_leave(error);
    }
    return fake_leave(fake_error_of(device_stream_synchronize(fake.host, stream->host)));
}

/* Not ready while an issued item has not run. Callers can rely on no more than that. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    int error;

    FAKE_RUNTIME_ENTER(cudaStreamQuery);
    error = fake_capture_forbids_stream(stream);
    if (error != 0) {
        return fake_leave(error);
    }
    reap(&stream->items);
    return fake_leave(stream->items.first == NULL ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaDeviceSynchronize(void)
{
    capu_status status = CAPU_OK;

    int error;

    FAKE_RUNTIME_ENTER(cudaDeviceSynchronize);
    error = fake_capture_forbids_device();
    if (error != 0) {
        return fake_leave(error);
    }
    for (struct CUstream_st *stream = fake.streams; stream != NULL && status == CAPU_OK;
         stream = stream->next) {
        status = device_stream_synchronize(fake.host, stream->host);
    }
    return fake_leave(fake_error_of(status));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    bool with_timing = (flags & cudaEventDisableTiming) == 0;
    struct CUevent_st *made;

    FAKE_RUNTIME_ENTER(cudaEventCreateWithFlags);
    if ((flags & ~(unsigned)cudaEventDisableTiming) != 0) {
        return fake_leave(cudaErrorInvalidValue);
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return fake_leave(cudaErrorMemoryAllocation);
    }
    if (device_event_create(fake.host, with_timing, &made->host) != CAPU_OK) {
        free(made);
        return fake_leave(cudaErrorMemoryAllocation);
    }
    made->with_timing = with_timing;
    made->device = fake_current();
    made->next = fake.events;
    fake.events = made;
    fake.event_flags = flags;
    *event = made;
    return cudaSuccess;
}

static void free_event(struct CUevent_st *event)
{
    struct CUevent_st **link = &fake.events;

    while (*link != event) {
        link = &(*link)->next;
    }
    *link = event->next;
    device_event_destroy(fake.host, event->host);
    fake_nodes_free(&event->at);
    free(event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    FAKE_RUNTIME_ENTER(cudaEventDestroy);
    free_event(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    capu_status status;
    int error;

    FAKE_RUNTIME_ENTER(cudaEventRecord);
    if (event->device != stream->device || stream->device != fake_current()) {
        return fake_leave(cudaErrorInvalidResourceHandle);
    }
    if (fake_captures_record(event, stream, &error)) {
        return fake_leave(error);
    }
    event->capture_id = 0;
    status = device_event_record(fake.host, event->host, stream->host);
    if (status == CAPU_OK) {
        event->is_recorded = true;
        fake.timed_records += event->with_timing;
    }
    return fake_leave(fake_error_of(status));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    struct item item = {.kind = ITEM_RECORD, .event = event};
    int error;

    if (flags == cudaEventRecordDefault) {
        return cudaEventRecord(event, stream);
    }
    FAKE_RUNTIME_ENTER(cudaEventRecord);
    if (flags != cudaEventRecordExternal || event->device != stream->device ||
        stream->device != fake_current() || !fake_captures(stream, &item, &error)) {
        return fake_leave(cudaErrorInvalidValue);
    }
    return fake_leave(error);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    int error;

    FAKE_RUNTIME_ENTER(cudaEventQuery);
    error = fake_capture_forbids_event(event);
    if (error != 0) {
        return fake_leave(error);
    }
    return fake_leave(fake_error_of(device_event_query(fake.host, event->host)));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    int error;

    FAKE_RUNTIME_ENTER(cudaEventSynchronize);
    error = fake_capture_forbids_event(event);
    if (error != 0) {
        return fake_leave(error);
    }
    return fake_leave(fake_error_of(device_event_wait(fake.host, event->host)));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    int error;

    FAKE_RUNTIME_ENTER(cudaStreamWaitEvent);
    if (flags != 0) {
        return fake_leave(cudaErrorInvalidValue);
    }
    if (fake_captures_wait(stream, event, &error)) {
        return fake_leave(error);
    }
    return fake_leave(fake_error_of(device_stream_follow(fake.host, stream->host, event->host)));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    uint64_t forth = 0;
    uint64_t back = 0;
    capu_status status;
    int error;

    FAKE_RUNTIME_ENTER(cudaEventElapsedTime);
    if (!from->with_timing || !to->with_timing || !from->is_recorded || !to->is_recorded) {
        return fake_leave(cudaErrorInvalidResourceHandle);
    }
    error = fake_capture_forbids_event(from);
    if (error == 0) {
        error = fake_capture_forbids_event(to);
    }
    if (error != 0) {
        return fake_leave(error);
    }
    status = device_event_elapsed(fake.host, from->host, to->host, &forth);
    if (status == CAPU_OK) {
        status = device_event_elapsed(fake.host, to->host, from->host, &back);
    }
    if (status == CAPU_OK) {
        *ms = (float)((double)forth * 1e-6 - (double)back * 1e-6);
    }
    return fake_leave(fake_error_of(status));
}

int fake_copy_item(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                   struct item *item)
{
    const void *host = kind == cudaMemcpyDeviceToHost ? to : from;
    bool is_to_device;
    bool is_from_device;
    bool is_half_pinned;

    *item =
        (struct item){.kind = ITEM_COPY, .to = to, .from = from, .bytes = bytes, .direction = kind};
    fake_lock();
    is_to_device = fake_is_device_memory(to, bytes);
    is_from_device = fake_is_device_memory(from, bytes);
    is_half_pinned = fake_is_half_pinned(to, bytes) || fake_is_half_pinned(from, bytes);
    item->pinned = fake_is_pinned(host, bytes) ? host : NULL;
    fake_unlock();
    return is_half_pinned || is_to_device != (kind != cudaMemcpyDeviceToHost) ||
                   is_from_device != (kind != cudaMemcpyHostToDevice)
               ? cudaErrorInvalidValue
               : 0;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    struct item item;
    int error;

    FAKE_RUNTIME_ENTER(cudaMemcpyAsync);
    error = fake_copy_item(to, from, bytes, kind, &item);
    return fake_leave(error != 0 ? error : issue(stream, &item));
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    struct item item = {.kind = ITEM_SET, .to = to, .bytes = bytes, .byte = byte};

    FAKE_RUNTIME_ENTER(cudaMemsetAsync);
    if (stream->device != fake_current()) {
        return fake_leave(cudaErrorInvalidResourceHandle);
    }
    return fake_leave(issue(stream, &item));
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                             unsigned int flags)
{
    struct item item = {.kind = ITEM_WAIT,
                        .to = (void *)(uintptr_t)address,
                        .bytes = sizeof(uint32_t),
                        .value = value,
                        .flags = flags};
    bool can_wait;
    int error;

    FAKE_DRIVER_ENTER(cuStreamWaitValue32);
    error = fake_capture_forbids_stream(stream);
    if (error != 0) {
        return (CUresult)error;
    }
    fake_lock();
    can_wait = address % sizeof(uint32_t) == 0 && can_wait_for(item.to);
    fake_unlock();
    if (!can_wait || flags > CU_STREAM_WAIT_VALUE_NOR) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return (CUresult)issue(stream, &item);
}

int fake_cudart_device_of(capu_stream stream)
{
    const struct CUstream_st *at = stream;

    return at != NULL ? at->device : fake_current();
}

void fake_streams_finish(void)
{
    fake_capture_finish();
    fake_graphs_finish();
    while (fake.streams != NULL) {
        free_stream(fake.streams);
    }
    while (fake.events != NULL) {
        free_event(fake.events);
    }
}

struct fake_cudart_left fake_cudart_left(void)
{
    struct fake_cudart_left left = {.mappings = fake.mapping_count};

    for (const struct fake_handle *at = fake.handles; at != NULL; at = at->next) {
        left.handles++;
    }
    for (const struct fake_range *at = fake.ranges; at != NULL; at = at->next) {
        left.ranges++;
    }
    for (const struct fake_registered *at = fake.registered; at != NULL; at = at->next) {
        left.registered++;
    }
    for (const struct CUstream_st *at = fake.streams; at != NULL; at = at->next) {
        left.streams++;
    }
    for (const struct CUevent_st *at = fake.events; at != NULL; at = at->next) {
        left.events++;
    }
    left.graphs = fake_graphs_count();
    return left;
}
