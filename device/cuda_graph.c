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
#include "device/cuda.h"

#include <stdlib.h>

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
static capu_status update(struct cuda_device *cuda, struct device_graph *graph,
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
        status = update(cuda, old, captured, is_updated);
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
