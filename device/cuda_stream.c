/*
 * The cuda device's streams, events and work: CUDA's own, with the checks of the contract around
 * them.
 *
 * A capu_stream is a cudaStream_t, so that the program's own stream can be used as well. Events
 * whose time is never asked for are created without timing, since recording those costs a tenth.
 *
 * After a failure nothing is enqueued any more, and waits return at once: every CUDA call would
 * return the same error of the lost device, so it is reported once.
 */
#include "device/cuda.h"

#include <stdlib.h>

struct device_event {
    cudaEvent_t event;
    bool with_timing;
    bool is_recorded;
};

capu_status cuda_stream_create(struct device *device, enum device_engine engine,
                               capu_stream *stream)
{
    struct cuda_device *cuda = cuda_of(device);
    cudaStream_t made = NULL;
    capu_status status = cuda_activate(cuda);

    (void)engine; /* the driver chooses a copy's engine by its direction */
    if (status == CAPU_OK) {
        /* Non-blocking: it must not wait for the NULL stream, which the program may use. */
        status = CUDA_CALL(cuda, CAPU_NO_HOST_MEMORY,
                           cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    }
    if (status == CAPU_OK) {
        *stream = made;
    }
    return status;
}

/* The program's stream may be one of CUDA's special handles, which mean a stream of the current
   device. Hence the activation. */
capu_status cuda_stream_synchronize(struct device *device, capu_stream stream)
{
    struct cuda_device *cuda = cuda_of(device);
    capu_status status = cuda_activate_quickly(cuda);

    return status != CAPU_OK ? status
                             : CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaStreamSynchronize(stream));
}

void cuda_stream_destroy(struct device *device, capu_stream stream)
{
    struct cuda_device *cuda = cuda_of(device);

    /* cudaStreamDestroy alone would return while the work still runs. */
    (void)cuda_stream_synchronize(device, stream);
    (void)CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaStreamDestroy(stream));
}

capu_status cuda_event_create(struct device *device, bool with_timing, struct device_event **event)
{
    struct cuda_device *cuda = cuda_of(device);
    struct device_event *made;
    capu_status status = cuda_activate(cuda);

    if (status != CAPU_OK) {
        return status;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = CUDA_CALL(cuda, CAPU_NO_HOST_MEMORY,
                       cudaEventCreateWithFlags(
                           &made->event, with_timing ? cudaEventDefault : cudaEventDisableTiming));
    if (status != CAPU_OK) {
        free(made);
        return status;
    }
    made->with_timing = with_timing;
    *event = made;
    return CAPU_OK;
}

void cuda_event_destroy(struct device *device, struct device_event *event)
{
    (void)CUDA_CALL(cuda_of(device), CAPU_DEVICE_FAILED, cudaEventDestroy(event->event));
    free(event);
}

capu_status cuda_event_record(struct device *device, struct device_event *event, capu_stream stream)
{
    struct cuda_device *cuda = cuda_of(device);
    capu_status status = cuda_activate_quickly(cuda);

    if (status == CAPU_OK) {
        status = CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaEventRecord(event->event, stream));
    }
    if (status == CAPU_OK) {
        event->is_recorded = true;
    }
    return status;
}

capu_status cuda_event_query(struct device *device, struct device_event *event)
{
    struct cuda_device *cuda = cuda_of(device);
    capu_status status = cuda_failure_of(cuda);

    if (status == CAPU_OK) {
        status = CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaEventQuery(event->event));
    }
    /* A failed query says nothing about the event, and memory is reused once an event is reached.
     */
    return status == CAPU_DEVICE_FAILED ? CAPU_NOT_READY : status;
}

capu_status cuda_event_wait(struct device *device, struct device_event *event)
{
    struct cuda_device *cuda = cuda_of(device);
    capu_status status = cuda_failure_of(cuda);

    return status != CAPU_OK
               ? status
               : CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaEventSynchronize(event->event));
}

capu_status cuda_stream_follow(struct device *device, capu_stream stream,
                               struct device_event *event)
{
    struct cuda_device *cuda = cuda_of(device);
    capu_status status = cuda_activate_quickly(cuda);

    return status != CAPU_OK
               ? status
               : CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaStreamWaitEvent(stream, event->event, 0));
}

capu_status cuda_event_elapsed(struct device *device, struct device_event *from,
                               struct device_event *to, uint64_t *ns)
{
    struct cuda_device *cuda = cuda_of(device);
    float ms = 0;
    capu_status status;

    if (!from->with_timing || !to->with_timing || !from->is_recorded || !to->is_recorded) {
        return CAPU_INVALID;
    }
    status = cuda_failure_of(cuda);
    if (status == CAPU_OK) {
        status =
            CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaEventElapsedTime(&ms, from->event, to->event));
    }
    if (status == CAPU_OK) {
        *ns = ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    }
    return status;
}

static capu_status copy_memory(struct device *device, capu_stream stream, void *to,
                               const void *from, uint64_t bytes, enum cudaMemcpyKind kind)
{
    struct cuda_device *cuda = cuda_of(device);
    capu_status status = cuda_activate_quickly(cuda);

    return status != CAPU_OK ? status
                             : CUDA_CALL(cuda, CAPU_DEVICE_FAILED,
                                         cudaMemcpyAsync(to, from, (size_t)bytes, kind, stream));
}

capu_status cuda_copy_out(struct device *device, capu_stream stream, void *to, const void *from,
                          uint64_t bytes)
{
    return copy_memory(device, stream, to, from, bytes, cudaMemcpyDeviceToHost);
}

capu_status cuda_copy_in(struct device *device, capu_stream stream, void *to, const void *from,
                         uint64_t bytes)
{
    return copy_memory(device, stream, to, from, bytes, cudaMemcpyHostToDevice);
}

capu_status cuda_copy_within(struct device *device, capu_stream stream, void *to, const void *from,
                             uint64_t bytes)
{
    return copy_memory(device, stream, to, from, bytes, cudaMemcpyDeviceToDevice);
}

capu_status cuda_fill(struct device *device, capu_stream stream, void *to, unsigned char byte,
                      uint64_t bytes)
{
    struct cuda_device *cuda = cuda_of(device);
    capu_status status = cuda_activate_quickly(cuda);

    return status != CAPU_OK ? status
                             : CUDA_CALL(cuda, CAPU_DEVICE_FAILED,
                                         cudaMemsetAsync(to, byte, (size_t)bytes, stream));
}

capu_status cuda_run(struct device *device, capu_stream stream, const struct device_work *work)
{
    struct cuda_device *cuda = cuda_of(device);
    enum device_capture state = DEVICE_RUNS;
    capu_status status = cuda_activate_quickly(cuda);
    capu_status answer;

    if (status != CAPU_OK) {
        return status;
    }
    answer = work->run(stream, work->arguments);
    if (work->answer != NULL) {
        *work->answer = answer;
    }
    if (answer == CAPU_OK) {
        return CAPU_OK;
    }
    status = cuda_capture_state(device, stream, &state);
    if (status != CAPU_OK || state != DEVICE_RUNS) {
        return status == CAPU_DEVICE_LOST ? status : CAPU_OP_FAILED;
    }
    /* The op may be the first to see that the device is lost. Asking the stream shows whether it
     * is. */
    status = CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaStreamQuery(stream));
    return status == CAPU_DEVICE_LOST ? status : CAPU_OP_FAILED;
}

/*
 * The cuda device's captures and graphs.
 *
 * Captures are begun in mode relaxed: what a run function may call beside its launches is its own
 * matter, and the library's second thread goes on pinning memory. What conflicts with a capture in
 * any mode is refused by CUDA, and the capture ends without a graph.
 *
 * A graph keeps what it was instantiated from, since that names the nodes of the executable graph,
 * also after this was updated.
 */

struct device_graph {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
};

/* The call was changed in CUDA 13; before, it had another name. */
#if CUDART_VERSION >= 13000
#define GET_CAPTURE_INFO cudaStreamGetCaptureInfo
#else
#define GET_CAPTURE_INFO cudaStreamGetCaptureInfo_v3
#endif

capu_status cuda_capture_begin(struct device *device, capu_stream stream)
{
    struct cuda_device *cuda = cuda_of(device);
    capu_status status = cuda_activate_quickly(cuda);

    return status != CAPU_OK
               ? status
               : CUDA_CALL(cuda, CAPU_DEVICE_FAILED,
                           cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}

/* Makes a graph executable. Takes `captured` if that succeeds. */
static capu_status instantiate(struct cuda_device *cuda, cudaGraph_t captured,
                               struct device_graph **graph)
{
    struct device_graph *made = calloc(1, sizeof(*made));
    capu_status status;

    if (made == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    made->graph = captured;
    status =
        CUDA_CALL(cuda, CAPU_OVER_BUDGET, cudaGraphInstantiate(&made->executable, captured, 0));
    if (status != CAPU_OK) {
        free(made);
        return status;
    }
    *graph = made;
    return CAPU_OK;
}

/* Changes an executable graph to what was captured, if that has the same shape. */
static capu_status update_graph(struct cuda_device *cuda, struct device_graph *graph,
                                cudaGraph_t captured, bool *is_updated)
{
    cudaGraphExecUpdateResultInfo result = {0};
    int error = (int)cudaGraphExecUpdate(graph->executable, captured, &result);

    *is_updated = error == cudaSuccess;
    if (error == cudaErrorGraphExecUpdateFailure) {
        cuda_forget_error(error);
        return CAPU_OK;
    }
    return cuda_translate(cuda, error, CAPU_OVER_BUDGET, "cudaGraphExecUpdate");
}

capu_status cuda_capture_end(struct device *device, capu_stream stream, struct device_graph **graph,
                             bool *is_updated)
{
    struct cuda_device *cuda = cuda_of(device);
    struct device_graph *old = *graph;
    cudaGraph_t captured = NULL;
    capu_status status = cuda_activate_quickly(cuda);

    *is_updated = false;
    if (status == CAPU_OK) {
        status = CUDA_CALL(cuda, CAPU_NO_HOST_MEMORY, cudaStreamEndCapture(stream, &captured));
    }
    if (status == CAPU_OK && old != NULL) {
        status = update_graph(cuda, old, captured, is_updated);
    }
    if (status == CAPU_OK && !*is_updated) {
        status = instantiate(cuda, captured, graph);
        if (status == CAPU_OK) {
            cuda_graph_destroy(device, old);
            return CAPU_OK;
        }
    }
    if (captured != NULL) {
        (void)CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaGraphDestroy(captured));
    }
    return status;
}

capu_status cuda_capture_state(struct device *device, capu_stream stream,
                               enum device_capture *state)
{
    struct cuda_device *cuda = cuda_of(device);
    enum cudaStreamCaptureStatus answer = cudaStreamCaptureStatusNone;
    capu_status status = cuda_activate_quickly(cuda);

    if (status == CAPU_OK) {
        status = CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaStreamIsCapturing(stream, &answer));
    }
    if (status == CAPU_OK) {
        *state = answer == cudaStreamCaptureStatusNone     ? DEVICE_RUNS
                 : answer == cudaStreamCaptureStatusActive ? DEVICE_CAPTURES
                                                           : DEVICE_CAPTURE_FAILED;
    }
    return status;
}

capu_status cuda_capture_node(struct device *device, capu_stream stream, void **node)
{
    struct cuda_device *cuda = cuda_of(device);
    enum cudaStreamCaptureStatus answer = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t *nodes = NULL;
    size_t count = 0;
    capu_status status = cuda_activate_quickly(cuda);

    if (status == CAPU_OK) {
        status = CUDA_CALL(cuda, CAPU_DEVICE_FAILED,
                           GET_CAPTURE_INFO(stream, &answer, NULL, NULL, &nodes, NULL, &count));
    }
    if (status == CAPU_OK && (answer != cudaStreamCaptureStatusActive || count != 1)) {
        return CAPU_DEVICE_FAILED;
    }
    if (status == CAPU_OK) {
        *node = nodes[0];
    }
    return status;
}

capu_status cuda_graph_set_copy_in(struct device *device, struct device_graph *graph, void *node,
                                   const struct device_copy *copy)
{
    struct cuda_device *cuda = cuda_of(device);
    capu_status status = cuda_activate_quickly(cuda);

    return status != CAPU_OK
               ? status
               : CUDA_CALL(cuda, CAPU_DEVICE_FAILED,
                           cudaGraphExecMemcpyNodeSetParams1D(
                               graph->executable, (cudaGraphNode_t)node, copy->to, copy->from,
                               (size_t)copy->bytes, cudaMemcpyHostToDevice));
}

capu_status cuda_graph_launch(struct device *device, struct device_graph *graph, capu_stream stream)
{
    struct cuda_device *cuda = cuda_of(device);
    capu_status status = cuda_activate_quickly(cuda);

    return status != CAPU_OK
               ? status
               : CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaGraphLaunch(graph->executable, stream));
}

void cuda_graph_destroy(struct device *device, struct device_graph *graph)
{
    struct cuda_device *cuda = cuda_of(device);

    if (graph == NULL) {
        return;
    }
    (void)cuda_activate_quickly(cuda);
    (void)CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaGraphExecDestroy(graph->executable));
    (void)CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaGraphDestroy(graph->graph));
    free(graph);
}
