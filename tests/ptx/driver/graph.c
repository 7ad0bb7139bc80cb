/*
 * Graphs that are made by capturing streams. While a stream captures, its work is added to a graph
 * and not issued. A graph keeps its work in the order of capture, which is a legal order of its
 * nodes; a launch is one piece of work that carries all of it out.
 *
 * A graph belongs to whoever captures it or holds it; graphs are not used by two threads at once.
 */
#include "tests/ptx/driver/driver.h"

#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    queue_function run;
    size_t bytes;
    unsigned char block[] __attribute__((aligned(16)));
};

struct CUgraph_st {
    struct node *first;
    struct node **last; /* where the next one goes */
};

struct CUgraphExec_st {
    struct CUgraph_st graph;
};

static void init(struct CUgraph_st *graph)
{
    graph->first = NULL;
    graph->last = &graph->first;
}

CUresult graph_add(CUgraph graph, queue_function run, const void *block, size_t bytes)
{
    struct node *node = malloc(sizeof(*node) + bytes);

    if (node == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->next = NULL;
    node->run = run;
    node->bytes = bytes;
    memcpy(node->block, block, bytes);
    *graph->last = node;
    graph->last = &node->next;
    return CUDA_SUCCESS;
}

static void clear(struct CUgraph_st *graph)
{
    while (graph->first != NULL) {
        struct node *next = graph->first->next;

        free(graph->first);
        graph->first = next;
    }
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    CUgraph graph;

    DRIVER_ENTER(driver_enter_context);
    if (mode > 2) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    graph = malloc(sizeof(*graph));
    if (graph == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    init(graph);
    if (!stream_capture_begin(stream, graph)) {
        free(graph);
        return stream_of(stream) == NULL ? CUDA_ERROR_INVALID_HANDLE
                                         : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    DRIVER_ENTER(driver_enter_context);
    if (graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *graph = stream_capture_end(stream);
    return *graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    CUresult result = CUDA_SUCCESS;
    CUgraphExec made;

    (void)flags;
    DRIVER_ENTER(driver_enter_context);
    if (exec == NULL || graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = malloc(sizeof(*made));
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    init(&made->graph);
    for (const struct node *node = graph->first; node != NULL && result == CUDA_SUCCESS;
         node = node->next) {
        result = graph_add(&made->graph, node->run, node->block, node->bytes);
    }
    if (result != CUDA_SUCCESS) {
        clear(&made->graph);
        free(made);
        return result;
    }
    *exec = made;
    return CUDA_SUCCESS;
}

static CUresult carry_out(void *block)
{
    CUgraphExec exec = *(CUgraphExec *)block;
    CUresult result = CUDA_SUCCESS;

    for (struct node *node = exec->graph.first; node != NULL && result == CUDA_SUCCESS;
         node = node->next) {
        result = node->run(node->block);
    }
    return result;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    uint64_t number;

    DRIVER_ENTER(driver_enter_context);
    if (exec == NULL || stream_of(stream) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream_is_capturing(stream)) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return stream_issue(stream, carry_out, &exec, sizeof(exec), &number);
}

CUresult cuGraphDestroy(CUgraph graph)
{
    DRIVER_ENTER(driver_enter);
    if (graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    clear(graph);
    free(graph);
    return CUDA_SUCCESS;
}

/* Launches of it may still be waiting for their turn. */
CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    CUresult result;

    DRIVER_ENTER(driver_enter);
    if (exec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = queue_wait(queue_last_issued());
    clear(&exec->graph);
    free(exec);
    return result;
}
