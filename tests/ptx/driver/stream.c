/*
 * Streams, events and host functions. A stream is the number of its last work, an event the number
 * of the work that records it; since all work runs in the order of issue, waiting for an event on
 * the device needs nothing.
 *
 * Streams 0 and 1 are the legacy default stream, 2 the calling thread's own. The lock guards the
 * lists and the numbers; a handle that is not in its list is invalid.
 */
#include "tests/ptx/driver/graph.h"
#include "tests/ptx/include/driver_rules.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* What streams and events have in common; the first of each. */
struct entry {
    struct entry *next;
    struct capture_place place; /* of an event: where a capture recorded it last */
};

struct CUstream_st {
    struct entry entry;
    uint64_t last; /* number of its last work; 0: none yet */
    uint64_t id;
    unsigned flags;
    int priority;
};

struct CUevent_st {
    struct entry entry;
    uint64_t number; /* of the last record; 0: none */
    uint64_t ns;     /* when it was carried out */
    unsigned flags;
};

static struct {
    pthread_mutex_t lock;
    struct entry *streams;
    struct entry *events;
    uint64_t ids;
} list = {.lock = PTHREAD_MUTEX_INITIALIZER, .ids = 2};

static struct CUstream_st legacy = {.id = 1};
static _Thread_local struct CUstream_st own;

/* Whether it is in a list. Pre: the lock is held. */
static bool is_listed(const struct entry *first, const void *handle)
{
    while (first != NULL && first != handle) {
        first = first->next;
    }
    return first != NULL;
}

/* Pre: the lock is held. */
static void enlist(struct entry **first, struct entry *entry)
{
    entry->next = *first;
    *first = entry;
}

/* Frees what is in a list. `entry` may be any handle of the program: it is looked up before it is
   used. */
static CUresult destroy(struct entry **first, struct entry *entry)
{
    bool is_one;

    pthread_mutex_lock(&list.lock);
    is_one = is_listed(*first, entry);
    if (is_one) {
        while (*first != entry) {
            first = &(*first)->next;
        }
        *first = entry->next;
    }
    pthread_mutex_unlock(&list.lock);
    if (!is_one) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    capture_leave(&entry->place);
    free(entry);
    return CUDA_SUCCESS;
}

CUstream stream_of(CUstream handle)
{
    bool is_one;

    if (handle == NULL || handle == CU_STREAM_LEGACY) {
        return &legacy;
    }
    if (handle == CU_STREAM_PER_THREAD) {
        own.flags = CU_STREAM_NON_BLOCKING;
        return &own;
    }
    pthread_mutex_lock(&list.lock);
    is_one = is_listed(list.streams, handle);
    pthread_mutex_unlock(&list.lock);
    return is_one ? handle : NULL;
}

/* Pre: the lock is held. */
static CUevent find_event(CUevent handle)
{
    return is_listed(list.events, handle) ? handle : NULL;
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
    if (stream->entry.place.capture != NULL) {
        *number = 0;
        return capture_add(&stream->entry.place, run, block, bytes);
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

    return stream == NULL || stream == &legacy ? NULL : &stream->entry.place;
}

void stream_visit_places(void (*visit)(struct capture_place *place, bool is_event, void *data),
                         void *data)
{
    pthread_mutex_lock(&list.lock);
    visit(&own.entry.place, false, data);
    for (struct entry *at = list.streams; at != NULL; at = at->next) {
        visit(&at->place, false, data);
    }
    for (struct entry *at = list.events; at != NULL; at = at->next) {
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
    enlist(&list.streams, &made->entry);
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
    DRIVER_ENTER(driver_enter_context);
    return destroy(&list.streams, (struct entry *)stream);
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
    if (copy.entry.place.capture == NULL) {
        return stream_is_capturing(stream) && flags == 0 ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION
                                                         : CUDA_SUCCESS;
    }
    /* A stream that waits for an event of a capture takes part in it. */
    if (stream_place(stream) == NULL) {
        return capture_check_legacy();
    }
    result = capture_join(stream_place(stream), &copy.entry.place);
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

struct value_wait {
    CUdeviceptr address;
    cuuint32_t value;
    unsigned flags;
};

/* What the value waits for is stored by the host, or by work that was issued before. */
static CUresult wait_for_value(void *block)
{
    const struct value_wait *wait = block;
    const struct timespec pause = {.tv_nsec = 20000};

    for (;;) {
        uint32_t now =
            __atomic_load_n((const uint32_t *)(uintptr_t)wait->address, __ATOMIC_ACQUIRE);

        if (driver_is_waited_for(now, wait->value, wait->flags)) {
            return CUDA_SUCCESS;
        }
        nanosleep(&pause, NULL);
    }
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    const struct value_wait wait = {address, value, flags};
    uint64_t number;

    ENTER_STREAM(stream, address % sizeof(value) == 0 && flags <= CU_STREAM_WAIT_VALUE_NOR &&
                             host_memory_is_reachable(address, sizeof(value)));
    if (stream_is_capturing(stream)) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return stream_issue(stream, wait_for_value, &wait, sizeof(wait), &number);
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
    enlist(&list.events, &made->entry);
    pthread_mutex_unlock(&list.lock);
    *event = made;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    DRIVER_ENTER(driver_enter_context);
    return destroy(&list.events, (struct entry *)event);
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
        capture_leave(&event->entry.place);
        return capture_join(&event->entry.place, stream_place(stream));
    }
    result = stream_issue(stream, note_time, &event, sizeof(event), &number);
    if (result == CUDA_SUCCESS) {
        pthread_mutex_lock(&list.lock);
        capture_leave(&event->entry.place);
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
    if (copy.entry.place.capture != NULL) {
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
    return copy.entry.place.capture != NULL ? CUDA_ERROR_CAPTURED_EVENT : queue_wait(copy.number);
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
