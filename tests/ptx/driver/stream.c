/*
 * Streams, events and host functions. A stream is the number of its last work, an event the number
 * of the work that records it; since all work runs in the order of issue, waiting for an event on
 * the device needs nothing.
 *
 * Streams 0 and 1 are the legacy default stream, 2 the calling thread's own. The lock guards the
 * lists and the numbers; a handle that is not in its list is invalid.
 */
#include "tests/ptx/driver/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct CUstream_st {
    struct CUstream_st *next;
    uint64_t last; /* number of its last work; 0: none yet */
    uint64_t id;
    unsigned flags;
    int priority;
    struct capture_place place;
};

struct CUevent_st {
    struct CUevent_st *next;
    uint64_t number; /* of the last record; 0: none */
    uint64_t ns;     /* when it was carried out */
    unsigned flags;
    struct capture_place place; /* where a capture recorded it last */
};

static struct {
    pthread_mutex_t lock;
    struct CUstream_st *streams;
    struct CUevent_st *events;
    uint64_t ids;
} list = {.lock = PTHREAD_MUTEX_INITIALIZER, .ids = 2};

static struct CUstream_st legacy = {.id = 1};
static _Thread_local struct CUstream_st own;

CUstream stream_of(CUstream handle)
{
    struct CUstream_st *at;

    if (handle == NULL || handle == CU_STREAM_LEGACY) {
        return &legacy;
    }
    if (handle == CU_STREAM_PER_THREAD) {
        own.flags = CU_STREAM_NON_BLOCKING;
        return &own;
    }
    pthread_mutex_lock(&list.lock);
    at = list.streams;
    while (at != NULL && at != handle) {
        at = at->next;
    }
    pthread_mutex_unlock(&list.lock);
    return at;
}

/* Pre: the lock is held. */
static CUevent find_event(CUevent handle)
{
    struct CUevent_st *at = list.events;

    while (at != NULL && at != handle) {
        at = at->next;
    }
    return at;
}

/* A copy of what is known about an event. False: there is no such event. */
static bool event_copy(CUevent handle, struct CUevent_st *copy)
{
    CUevent event;

    pthread_mutex_lock(&list.lock);
    event = find_event(handle);
    if (event != NULL) {
        *copy = *event;
    }
    pthread_mutex_unlock(&list.lock);
    return event != NULL;
}

static uint64_t last_of(CUstream stream)
{
    uint64_t last;

    pthread_mutex_lock(&list.lock);
    last = stream->last;
    pthread_mutex_unlock(&list.lock);
    return last;
}

CUresult stream_issue(CUstream handle, queue_function run, const void *block, size_t bytes,
                      uint64_t *number)
{
    CUstream stream = stream_of(handle);
    CUresult result;

    if (stream == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream->place.capture != NULL) {
        *number = 0;
        return capture_add(&stream->place, run, block, bytes);
    }
    if (stream == &legacy) {
        result = capture_check_legacy();
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    result = queue_issue(run, block, bytes, number);
    if (result == CUDA_SUCCESS) {
        pthread_mutex_lock(&list.lock);
        stream->last = *number > stream->last ? *number : stream->last;
        pthread_mutex_unlock(&list.lock);
    }
    return result;
}

struct capture_place *stream_place(CUstream handle)
{
    CUstream stream = stream_of(handle);

    return stream == NULL || stream == &legacy ? NULL : &stream->place;
}

void stream_visit_places(void (*visit)(struct capture_place *place, bool is_event, void *data),
                         void *data)
{
    pthread_mutex_lock(&list.lock);
    visit(&own.place, false, data);
    for (CUstream at = list.streams; at != NULL; at = at->next) {
        visit(&at->place, false, data);
    }
    for (CUevent at = list.events; at != NULL; at = at->next) {
        visit(&at->place, true, data);
    }
    pthread_mutex_unlock(&list.lock);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    CUstream made;

    DRIVER_ENTER(driver_enter_context);
    if (stream == NULL || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->flags = flags;
    made->priority = priority;
    pthread_mutex_lock(&list.lock);
    made->id = ++list.ids;
    made->next = list.streams;
    list.streams = made;
    pthread_mutex_unlock(&list.lock);
    *stream = made;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    struct CUstream_st **at;
    bool is_one;

    DRIVER_ENTER(driver_enter_context);
    pthread_mutex_lock(&list.lock);
    at = &list.streams;
    while (*at != NULL && *at != stream) {
        at = &(*at)->next;
    }
    is_one = *at != NULL;
    if (is_one) {
        *at = stream->next;
    }
    pthread_mutex_unlock(&list.lock);
    if (!is_one) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    capture_leave(&stream->place);
    free(stream);
    return CUDA_SUCCESS;
}

/* Begins a call about a stream. */
#define ENTER_STREAM(stream, is_valid)        \
    do {                                      \
        DRIVER_ENTER(driver_enter_context);   \
        if (stream_of(stream) == NULL) {      \
            return CUDA_ERROR_INVALID_HANDLE; \
        }                                     \
        if (!(is_valid)) {                    \
            return CUDA_ERROR_INVALID_VALUE;  \
        }                                     \
    } while (0)

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    ENTER_STREAM(stream, priority != NULL);
    *priority = stream_of(stream)->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
    ENTER_STREAM(stream, flags != NULL);
    *flags = stream_of(stream)->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
    ENTER_STREAM(stream, id != NULL);
    *id = stream_of(stream)->id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    ENTER_STREAM(stream, context != NULL);
    *context = context_current();
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    struct CUevent_st copy;
    CUresult result;

    ENTER_STREAM(stream, flags <= 1);
    if (!event_copy(event, &copy)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (copy.place.capture == NULL) {
        return stream_is_capturing(stream) && flags == 0 ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION
                                                         : CUDA_SUCCESS;
    }
    /* A stream that waits for an event of a capture takes part in it. */
    if (stream_place(stream) == NULL) {
        return capture_check_legacy();
    }
    result = capture_join(stream_place(stream), &copy.place);
    capture_note_blocking(stream);
    return result;
}

CUresult cuStreamQuery(CUstream stream)
{
    ENTER_STREAM(stream, true);
    if (stream_is_capturing(stream)) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return queue_is_done(last_of(stream_of(stream))) ? queue_error() : CUDA_ERROR_NOT_READY;
}

/* The legacy default stream waits for all streams that are not non-blocking: here for all. */
CUresult cuStreamSynchronize(CUstream stream)
{
    CUstream resolved;

    ENTER_STREAM(stream, true);
    if (stream_is_capturing(stream)) {
        return capture_check_none();
    }
    resolved = stream_of(stream);
    if (resolved == &legacy && capture_check_legacy() != CUDA_SUCCESS) {
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    return queue_wait(resolved == &legacy ? queue_last_issued() : last_of(resolved));
}

struct host_call {
    CUhostFn function;
    CUstreamCallback callback; /* instead of `function` */
    CUstream stream;
    void *argument;
};

CUresult host_run(void *block)
{
    const struct host_call *call = block;

    if (call->callback != NULL) {
        call->callback(call->stream, CUDA_SUCCESS, call->argument);
    } else {
        call->function(call->argument);
    }
    return CUDA_SUCCESS;
}

CUresult host_make(const CUDA_HOST_NODE_PARAMS *params, void **block, size_t *bytes)
{
    struct host_call *call = calloc(1, sizeof(*call));

    if (call == NULL || params->fn == NULL) {
        free(call);
        return params->fn == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    call->function = params->fn;
    call->argument = params->userData;
    *block = call;
    *bytes = sizeof(*call);
    return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument)
{
    const struct host_call call = {.function = function, .argument = argument};
    uint64_t number;

    ENTER_STREAM(stream, function != NULL);
    return stream_issue(stream, host_run, &call, sizeof(call), &number);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *argument,
                             unsigned flags)
{
    const struct host_call call = {.callback = function, .stream = stream, .argument = argument};
    uint64_t number;

    ENTER_STREAM(stream, function != NULL && flags == 0);
    return stream_issue(stream, host_run, &call, sizeof(call), &number);
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    CUevent made;

    DRIVER_ENTER(driver_enter_context);
    if (event == NULL || flags > 7 ||
        ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->flags = flags;
    pthread_mutex_lock(&list.lock);
    made->next = list.events;
    list.events = made;
    pthread_mutex_unlock(&list.lock);
    *event = made;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    struct CUevent_st **at;
    bool is_one;

    DRIVER_ENTER(driver_enter_context);
    pthread_mutex_lock(&list.lock);
    at = &list.events;
    while (*at != NULL && *at != event) {
        at = &(*at)->next;
    }
    is_one = *at != NULL;
    if (is_one) {
        *at = event->next;
    }
    pthread_mutex_unlock(&list.lock);
    if (!is_one) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    capture_leave(&event->place);
    free(event);
    return CUDA_SUCCESS;
}

/* The event may have been destroyed since. */
static CUresult note_time(void *block)
{
    struct timespec now;
    CUevent event;

    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&list.lock);
    event = find_event(*(CUevent *)block);
    if (event != NULL) {
        event->ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
    pthread_mutex_unlock(&list.lock);
    return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    struct CUevent_st copy;
    uint64_t number;
    CUresult result;

    ENTER_STREAM(stream, flags <= 1);
    if (!event_copy(event, &copy)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    /* Without the flag, a capture only notes what the event comes after. */
    if (stream_is_capturing(stream) && flags != CU_EVENT_RECORD_EXTERNAL) {
        capture_leave(&event->place);
        return capture_join(&event->place, stream_place(stream));
    }
    result = stream_issue(stream, note_time, &event, sizeof(event), &number);
    if (result == CUDA_SUCCESS) {
        pthread_mutex_lock(&list.lock);
        capture_leave(&event->place);
        event->number = number != 0 ? number : event->number;
        pthread_mutex_unlock(&list.lock);
    }
    return result;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuEventQuery(CUevent event)
{
    struct CUevent_st copy;

    DRIVER_ENTER(driver_enter);
    if (!event_copy(event, &copy)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (copy.place.capture != NULL) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    return queue_is_done(copy.number) ? queue_error() : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event)
{
    struct CUevent_st copy;

    DRIVER_ENTER(driver_enter);
    if (!event_copy(event, &copy)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return copy.place.capture != NULL ? CUDA_ERROR_CAPTURED_EVENT : queue_wait(copy.number);
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to)
{
    struct CUevent_st first;
    struct CUevent_st last;

    DRIVER_ENTER(driver_enter);
    if (ms == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!event_copy(from, &first) || !event_copy(to, &last) || first.number == 0 ||
        last.number == 0 || ((first.flags | last.flags) & CU_EVENT_DISABLE_TIMING) != 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!queue_is_done(first.number) || !queue_is_done(last.number)) {
        return CUDA_ERROR_NOT_READY;
    }
    /* Both have completed, so what was copied before may be older than their times. */
    if (!event_copy(from, &first) || !event_copy(to, &last)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *ms = (float)((double)last.ns * 1e-6 - (double)first.ns * 1e-6);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    return cuEventElapsedTime_v2(ms, from, to);
}
