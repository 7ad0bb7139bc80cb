/*
 * Stream capture: work that is recorded as nodes of a graph instead of being run.
 *
 * As in CUDA, a stream joins a capture by waiting for an event that was recorded in it, and must be
 * joined back before the end. What conflicts with the capture is refused and invalidates it:
 * - waiting for or asking about a captured stream, or an event last recorded in a capture;
 * - waiting, in the capture, for an event that was recorded outside;
 * - waiting for the whole device;
 * - in other modes than relaxed, calls that CUDA calls potentially unsafe. Which these are is
 *   documented in part only. Here they are those that allocate, free, map, wait or ask: more than
 *   CUDA is known to refuse.
 * An invalidated capture refuses everything until it is ended, without a graph.
 */
#include "tests/fake_cudart/streams.h"
#include "tests/ptx/include/driver_rules.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local enum cudaStreamCaptureMode thread_mode;

void fake_nodes_free(struct node_set *set)
{
    free(set->nodes);
    *set = (struct node_set){0};
}

static bool has(const struct node_set *set, const struct CUgraphNode_st *node)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->nodes[i] == node) {
            return true;
        }
    }
    return false;
}

static bool add(struct node_set *set, struct CUgraphNode_st *node)
{
    struct CUgraphNode_st **larger;

    if (has(set, node)) {
        return true;
    }
    larger = realloc(set->nodes, (set->count + 1) * sizeof(struct CUgraphNode_st *));
    if (larger == NULL) {
        return false;
    }
    set->nodes = larger;
    set->nodes[set->count++] = node;
    return true;
}

static bool add_all(struct node_set *set, const struct node_set *more)
{
    for (size_t i = 0; i < more->count; i++) {
        if (!add(set, more->nodes[i])) {
            return false;
        }
    }
    return true;
}

static int invalidate(struct fake_capture *capture, int error)
{
    capture->is_invalidated = true;
    return error;
}

/* The capture of this number that is under way; NULL: it has ended. */
static struct fake_capture *find(unsigned long long id)
{
    struct fake_capture *capture = fake.captures;

    while (capture != NULL && capture->id != id) {
        capture = capture->next;
    }
    return capture;
}

bool fake_captures(struct CUstream_st *stream, const struct item *item, int *error)
{
    struct fake_capture *capture = stream->capture;
    struct CUgraphNode_st *node;

    *error = 0;
    if (capture == NULL) {
        return false;
    }
    if (capture->is_invalidated) {
        *error = cudaErrorStreamCaptureInvalidated;
        return true;
    }
    node = fake_graph_add(capture->graph, item, stream->lane, &stream->tail);
    stream->tail.count = 0;
    if (node == NULL || !add(&stream->tail, node)) {
        *error = invalidate(capture, cudaErrorMemoryAllocation);
    }
    return true;
}

/* Whether a capture prohibits this thread from calls that are potentially unsafe. */
static bool prohibits(const struct fake_capture *capture)
{
    return driver_capture_forbids(capture->mode, thread_mode,
                                  pthread_equal(capture->thread, pthread_self()) != 0);
}

/* Invalidates the captures that prohibit a call; `always`: whatever their mode is. */
static int forbid(bool always)
{
    int error = 0;

    fake_lock();
    for (struct fake_capture *at = fake.captures; at != NULL; at = at->next) {
        if (always || prohibits(at)) {
            error = invalidate(at, cudaErrorStreamCaptureUnsupported);
        }
    }
    fake_unlock();
    return error;
}

int fake_capture_forbids(void)
{
    return forbid(false);
}

int fake_capture_forbids_device(void)
{
    return forbid(true);
}

int fake_capture_forbids_stream(struct CUstream_st *stream)
{
    if (stream->capture != NULL) {
        return invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
    }
    return forbid(false);
}

int fake_capture_forbids_event(const struct CUevent_st *event)
{
    struct fake_capture *capture;

    if (event->capture_id == 0) {
        return forbid(false);
    }
    capture = find(event->capture_id);
    return capture != NULL ? invalidate(capture, cudaErrorCapturedEvent) : cudaErrorCapturedEvent;
}

bool fake_captures_record(struct CUevent_st *event, struct CUstream_st *stream, int *error)
{
    struct fake_capture *capture = stream->capture;

    *error = 0;
    if (capture == NULL) {
        return false;
    }
    event->at.count = 0;
    if (capture->is_invalidated) {
        *error = cudaErrorStreamCaptureInvalidated;
    } else if (!add_all(&event->at, &stream->tail)) {
        *error = invalidate(capture, cudaErrorMemoryAllocation);
    } else {
        event->capture_id = capture->id;
    }
    return true;
}

/* Makes a stream part of a capture. */
static void join(struct CUstream_st *stream, struct fake_capture *capture)
{
    stream->capture = capture;
    stream->tail.count = 0;
    stream->lane = capture->graph->lane_count++;
}

bool fake_captures_wait(struct CUstream_st *stream, const struct CUevent_st *event, int *error)
{
    struct fake_capture *own = stream->capture;
    struct fake_capture *other = event->capture_id != 0 ? find(event->capture_id) : NULL;

    *error = 0;
    if (own == NULL && event->capture_id == 0) {
        return false;
    }
    if ((own != NULL && own->is_invalidated) || (other != NULL && other->is_invalidated)) {
        *error = cudaErrorStreamCaptureInvalidated;
    } else if (own != NULL && other == NULL) {
        *error = invalidate(own, cudaErrorStreamCaptureIsolation);
    } else if (other == NULL) {
        *error = cudaErrorCapturedEvent;
    } else if (own != NULL && own != other) {
        invalidate(other, 0);
        *error = invalidate(own, cudaErrorStreamCaptureMerge);
    } else {
        if (own == NULL) {
            join(stream, other);
        }
        if (!add_all(&stream->tail, &event->at)) {
            *error = invalidate(other, cudaErrorMemoryAllocation);
        }
    }
    return true;
}

/* Takes all streams out of a capture, and frees it without its graph. */
static void close_capture(struct fake_capture *capture)
{
    struct fake_capture **link = &fake.captures;

    for (struct CUstream_st *at = fake.streams; at != NULL; at = at->next) {
        if (at->capture == capture) {
            at->capture = NULL;
            at->tail.count = 0;
        }
    }
    fake_lock();
    while (*link != capture) {
        link = &(*link)->next;
    }
    *link = capture->next;
    fake_unlock();
    free(capture);
}

void fake_capture_lose_stream(struct CUstream_st *stream)
{
    struct fake_capture *capture = stream->capture;

    if (capture != NULL) {
        invalidate(capture, 0);
    }
    if (capture != NULL && capture->origin == stream) {
        fake_graph_free(capture->graph);
        close_capture(capture);
    }
}

void fake_capture_finish(void)
{
    while (fake.captures != NULL) {
        fake_graph_free(fake.captures->graph);
        close_capture(fake.captures);
    }
    thread_mode = cudaStreamCaptureModeGlobal;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    struct fake_capture *capture;

    FAKE_RUNTIME_ENTER(cudaStreamBeginCapture);
    if (stream == NULL || (unsigned)mode > cudaStreamCaptureModeRelaxed) {
        return fake_leave(cudaErrorInvalidValue);
    }
    if (stream->capture != NULL) {
        return fake_leave(cudaErrorIllegalState);
    }
    capture = calloc(1, sizeof(*capture));
    if (capture == NULL) {
        return fake_leave(cudaErrorMemoryAllocation);
    }
    capture->graph = fake_graph_create();
    if (capture->graph == NULL) {
        free(capture);
        return fake_leave(cudaErrorMemoryAllocation);
    }
    capture->origin = stream;
    capture->thread = pthread_self();
    capture->mode = mode;
    join(stream, capture);
    fake_lock();
    capture->id = ++fake.capture_count;
    capture->next = fake.captures;
    fake.captures = capture;
    fake_unlock();
    return cudaSuccess;
}

/* Whether everything in the graph comes before what the origin has last: all streams were joined.
 */
static bool is_joined(const struct fake_capture *capture)
{
    const struct CUgraph_st *graph = capture->graph;
    bool *is_before = calloc(graph->count + 1, sizeof(*is_before));
    bool is_all = is_before != NULL;

    for (size_t i = 0; is_all && i < capture->origin->tail.count; i++) {
        is_before[capture->origin->tail.nodes[i]->index] = true;
    }
    for (size_t i = graph->count; is_all && i-- > 0;) {
        const struct node_set *after = &graph->nodes[i]->after;

        is_all = is_before[i];
        for (size_t k = 0; k < after->count; k++) {
            is_before[after->nodes[k]->index] = true;
        }
    }
    free(is_before);
    return is_all;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    struct fake_capture *capture = stream->capture;
    struct CUgraph_st *captured;
    int error = 0;

    FAKE_RUNTIME_ENTER(cudaStreamEndCapture);
    *graph = NULL;
    if (capture == NULL) {
        return fake_leave(cudaErrorIllegalState);
    }
    if (capture->origin != stream) {
        return fake_leave(invalidate(capture, cudaErrorStreamCaptureUnmatched));
    }
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        !pthread_equal(capture->thread, pthread_self())) {
        return fake_leave(cudaErrorStreamCaptureWrongThread);
    }
    if (capture->is_invalidated) {
        error = cudaErrorStreamCaptureInvalidated;
    } else if (!is_joined(capture)) {
        error = cudaErrorStreamCaptureUnjoined;
    }
    captured = capture->graph;
    close_capture(capture);
    if (error != 0) {
        fake_graph_free(captured);
        return fake_leave(error);
    }
    captured->next = fake.graphs;
    fake.graphs = captured;
    *graph = captured;
    return cudaSuccess;
}

bool fake_cudart_is_captured(capu_stream stream)
{
    const struct CUstream_st *at = stream;

    return at != NULL && at->capture != NULL;
}

static enum cudaStreamCaptureStatus status_of(const struct CUstream_st *stream)
{
    return stream->capture == NULL           ? cudaStreamCaptureStatusNone
           : stream->capture->is_invalidated ? cudaStreamCaptureStatusInvalidated
                                             : cudaStreamCaptureStatusActive;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    FAKE_RUNTIME_ENTER(cudaStreamIsCapturing);
    *status = status_of(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                                     size_t *count)
{
    FAKE_RUNTIME_ENTER(cudaStreamGetCaptureInfo);
    if (edges != NULL && nodes == NULL) {
        return fake_leave(cudaErrorInvalidValue);
    }
    *status = status_of(stream);
    if (*status != cudaStreamCaptureStatusActive) {
        return cudaSuccess;
    }
    if (id != NULL) {
        *id = stream->capture->id;
    }
    if (graph != NULL) {
        *graph = stream->capture->graph;
    }
    if (nodes != NULL) {
        *nodes = (const cudaGraphNode_t *)stream->tail.nodes;
    }
    if (edges != NULL) {
        *edges = NULL;
    }
    if (count != NULL) {
        *count = stream->tail.count;
    }
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    enum cudaStreamCaptureMode before = thread_mode;

    FAKE_RUNTIME_ENTER(cudaThreadExchangeStreamCaptureMode);
    if ((unsigned)*mode > cudaStreamCaptureModeRelaxed) {
        return fake_leave(cudaErrorInvalidValue);
    }
    thread_mode = *mode;
    *mode = before;
    return cudaSuccess;
}
