/*
 * Capturing streams: their work becomes nodes of a graph. A stream takes part in a capture that it
 * began, or from when it waits for an event of the capture.
 *
 * A call that is not allowed during a capture fails and makes the capture invalid, as in CUDA: a
 * call that may wait for work, depending on the mode, and use of the legacy default stream while a
 * stream captures that it would wait for. The lock guards the list of captures.
 */
#include "tests/ptx/driver/graph.h"
#include "tests/ptx/include/driver_rules.h"

#include "base/array.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct capture {
    struct capture *next;
    CUgraph graph;
    struct capture_place *place; /* of the stream that began it */
    CUstreamCaptureMode mode;
    pthread_t thread;
    uint64_t id;
    bool is_blocking; /* a stream takes part for which the legacy default stream waits */
    bool is_invalid;
};

static struct {
    pthread_mutex_t lock;
    struct capture *first;
    uint64_t ids;
} captures = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local CUstreamCaptureMode thread_mode;

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode previous = thread_mode;

    DRIVER_ENTER(driver_enter);
    if (mode == NULL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    thread_mode = *mode;
    *mode = previous;
    return CUDA_SUCCESS;
}

CUresult capture_check_wait(void)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&captures.lock);
    for (struct capture *at = captures.first; at != NULL; at = at->next) {
        if (driver_capture_forbids(at->mode, thread_mode,
                                   pthread_equal(at->thread, pthread_self()) != 0)) {
            at->is_invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    pthread_mutex_unlock(&captures.lock);
    return result;
}

CUresult capture_check_none(void)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&captures.lock);
    for (struct capture *at = captures.first; at != NULL; at = at->next) {
        at->is_invalid = true;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_unlock(&captures.lock);
    return result;
}

CUresult capture_check_legacy(void)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&captures.lock);
    for (struct capture *at = captures.first; at != NULL; at = at->next) {
        if (at->is_blocking) {
            at->is_invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    pthread_mutex_unlock(&captures.lock);
    return result;
}

CUresult driver_enter_waiting(void)
{
    CUresult result = driver_enter_context();

    return result == CUDA_SUCCESS ? capture_check_wait() : result;
}

/* Whether the legacy default stream would wait for a capture. */
static bool blocks_legacy(void)
{
    bool does = false;

    pthread_mutex_lock(&captures.lock);
    for (const struct capture *at = captures.first; at != NULL; at = at->next) {
        does |= at->is_blocking;
    }
    pthread_mutex_unlock(&captures.lock);
    return does;
}

static CUresult set_last(struct capture_place *place, const CUgraphNode *last, size_t count)
{
    CUgraphNode *kept = malloc((count + 1) * sizeof(CUgraphNode));

    if (kept == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (count > 0) {
        memcpy(kept, last, count * sizeof(CUgraphNode));
    }
    free(place->last);
    place->last = kept;
    place->count = count;
    return CUDA_SUCCESS;
}

CUresult capture_add(struct capture_place *place, queue_function run, const void *block,
                     size_t bytes)
{
    CUgraphNode node;
    CUresult result;

    if (place->capture->is_invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    result = graph_add(place->capture->graph, run, block, bytes, place->last, place->count, &node);
    return result == CUDA_SUCCESS ? set_last(place, &node, 1) : result;
}

CUresult capture_join(struct capture_place *place, const struct capture_place *other)
{
    CUgraphNode *both;
    CUresult result;

    if (place->capture != NULL && place->capture != other->capture) {
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    both = malloc((place->count + other->count + 1) * sizeof(CUgraphNode));
    if (both == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (place->count > 0) {
        memcpy(both, place->last, place->count * sizeof(CUgraphNode));
    }
    if (other->count > 0) {
        memcpy(both + place->count, other->last, other->count * sizeof(CUgraphNode));
    }
    result = set_last(place, both, place->count + other->count);
    free(both);
    if (result == CUDA_SUCCESS) {
        place->capture = other->capture;
    }
    return result;
}

void capture_leave(struct capture_place *place)
{
    free(place->last);
    *place = (struct capture_place){.capture = NULL};
}

bool stream_is_capturing(CUstream handle)
{
    const struct capture_place *place = stream_place(handle);

    return place != NULL && place->capture != NULL;
}

void capture_note_blocking(CUstream stream)
{
    unsigned flags = 0;

    if (stream_is_capturing(stream) && cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS &&
        (flags & CU_STREAM_NON_BLOCKING) == 0) {
        stream_place(stream)->capture->is_blocking = true;
    }
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    struct capture_place *place;
    struct capture *capture;

    DRIVER_ENTER(driver_enter_context);
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    place = stream_place(stream);
    if (place == NULL) {
        return stream_of(stream) == NULL ? CUDA_ERROR_INVALID_HANDLE
                                         : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (place->capture != NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    capture = calloc(1, sizeof(*capture));
    if (capture == NULL || cuGraphCreate(&capture->graph, 0) != CUDA_SUCCESS) {
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->place = place;
    capture->mode = mode;
    capture->thread = pthread_self();
    place->capture = capture;
    pthread_mutex_lock(&captures.lock);
    capture->id = ++captures.ids;
    capture->next = captures.first;
    captures.first = capture;
    pthread_mutex_unlock(&captures.lock);
    capture_note_blocking(stream);
    return CUDA_SUCCESS;
}

/* Marks the nodes that the place's last ones depend on. */
static void mark(const struct capture_place *place)
{
    const struct CUgraph_st *graph = place->capture->graph;

    for (size_t i = 0; i < graph->count; i++) {
        graph->nodes[i]->is_marked = false;
    }
    for (size_t i = 0; i < place->count; i++) {
        place->last[i]->is_marked = true;
    }
    for (size_t i = graph->count; i-- > 0;) {
        for (size_t k = 0; graph->nodes[i]->is_marked && k < graph->nodes[i]->before_count; k++) {
            graph->nodes[i]->before[k]->is_marked = true;
        }
    }
}

struct leaving {
    struct capture *capture;
    bool has_unjoined;
};

static void leave_capture(struct capture_place *place, bool is_event, void *data)
{
    struct leaving *leaving = data;

    if (place->capture != leaving->capture) {
        return;
    }
    for (size_t i = 0; i < place->count && !is_event; i++) {
        leaving->has_unjoined |= !place->last[i]->is_marked;
    }
    capture_leave(place);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    struct capture_place *place = stream_place(stream);
    struct leaving leaving = {.capture = place != NULL ? place->capture : NULL};
    CUresult result = CUDA_SUCCESS;
    struct capture **at;

    DRIVER_ENTER(driver_enter_context);
    if (graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (leaving.capture == NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (leaving.capture->place != place) {
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (leaving.capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(leaving.capture->thread, pthread_self())) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    mark(place);
    stream_visit_places(leave_capture, &leaving);
    pthread_mutex_lock(&captures.lock);
    at = &captures.first;
    while (*at != leaving.capture) {
        at = &(*at)->next;
    }
    *at = leaving.capture->next;
    pthread_mutex_unlock(&captures.lock);
    result = leaving.capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
             : leaving.has_unjoined      ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                         : CUDA_SUCCESS;
    *graph = leaving.capture->graph;
    free(leaving.capture);
    if (result != CUDA_SUCCESS) {
        (void)cuGraphDestroy(*graph);
        *graph = NULL;
    }
    return result;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    return cuStreamGetCaptureInfo_v2(stream, status, NULL, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **before, size_t *count)
{
    const struct capture_place *place = stream_place(stream);
    const struct capture *capture = place != NULL ? place->capture : NULL;

    DRIVER_ENTER(driver_enter_context);
    if (stream_of(stream) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (status == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (place == NULL && blocks_legacy()) {
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    *status = capture == NULL       ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                    : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        return CUDA_SUCCESS;
    }
    if (id != NULL) {
        *id = capture->id;
    }
    if (graph != NULL) {
        *graph = capture->graph;
    }
    if (before != NULL) {
        *before = place->last;
    }
    if (count != NULL) {
        *count = place->count;
    }
    return CUDA_SUCCESS;
}
