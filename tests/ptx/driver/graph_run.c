/*
 * Executable graphs: copies of graphs, whose nodes are in an order in which they can run. A launch
 * is one piece of work that carries all of them out. Launches may still be waiting for their turn
 * when a node gets other parameters or the graph is destroyed: those are waited for first.
 */
#include "tests/ptx/driver/graph.h"

#include <stdlib.h>

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    CUgraphExec made;
    CUresult result;

    (void)flags;
    DRIVER_ENTER(driver_enter_context);
    if (exec == NULL || graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = calloc(1, sizeof(*made));
    result = made != NULL ? graph_copy(&made->graph, graph, true) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    *exec = made;
    return CUDA_SUCCESS;
}

/* Children are at most as deep as the program's own nesting. */
static CUresult run_all(const struct CUgraph_st *graph)
{
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++) {
        const struct CUgraphNode_st *node = graph->nodes[i];

        result = node->child != NULL ? run_all(node->child) : node->run(node->block);
    }
    return result;
}

static CUresult carry_out(void *block)
{
    return run_all(&(*(CUgraphExec *)block)->graph);
}

/* A launch into a stream that captures is a node with the whole graph: not supported here. */
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

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    DRIVER_ENTER(driver_enter_context);
    return exec == NULL || stream_of(stream) == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    CUresult result;

    DRIVER_ENTER(driver_enter);
    if (exec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = queue_wait(queue_last_issued());
    graph_clear(&exec->graph);
    free(exec);
    return result;
}

/* The node of an executable graph that was made from another one. NULL: none of this type. */
static CUgraphNode find(CUgraphExec exec, CUgraphNode origin, queue_function run)
{
    for (size_t i = 0; exec != NULL && i < exec->graph.count; i++) {
        if (exec->graph.nodes[i]->origin == origin) {
            return exec->graph.nodes[i]->run == run ? exec->graph.nodes[i] : NULL;
        }
    }
    return NULL;
}

/* Takes the block. */
static CUresult replace(CUresult result, CUgraphNode node, void *block, size_t bytes)
{
    if (result == CUDA_SUCCESS) {
        result = queue_wait(queue_last_issued());
    }
    if (result == CUDA_SUCCESS) {
        result = graph_set(node, block, bytes);
    }
    free(block);
    return result;
}

#define EXEC_SET(exec, origin, run, make, params)          \
    do {                                                   \
        CUgraphNode node_ = find((exec), (origin), (run)); \
        void *block_ = NULL;                               \
        size_t bytes_ = 0;                                 \
        CUresult result_;                                  \
                                                           \
        DRIVER_ENTER(driver_enter_context);                \
        if (node_ == NULL || (params) == NULL) {           \
            return CUDA_ERROR_INVALID_VALUE;               \
        }                                                  \
        result_ = make((params), &block_, &bytes_);        \
        return replace(result_, node_, block_, bytes_);    \
    } while (0)

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *params)
{
    EXEC_SET(exec, node, launch_run, launch_make, params);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D *params, CUcontext context)
{
    (void)context;
    EXEC_SET(exec, node, copy_run, copy_make, params);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    (void)context;
    EXEC_SET(exec, node, fill_run, fill_make, params);
}

/* Whether two graphs differ in their nodes' types or in how many nodes each depends on. */
static CUgraphExecUpdateResult compare(const struct CUgraph_st *one, const struct CUgraph_st *other)
{
    if (one->count != other->count) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    for (size_t i = 0; i < one->count; i++) {
        if (one->nodes[i]->before_count != other->nodes[i]->before_count) {
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        }
        if (one->nodes[i]->run != other->nodes[i]->run) {
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        }
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* The nodes keep their origins: they are addressed by those of the first graph. */
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    struct CUgraph_st copy = {.nodes = NULL};
    CUresult result;

    DRIVER_ENTER(driver_enter_context);
    if (exec == NULL || graph == NULL || info == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = graph_copy(&copy, graph, true);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *info = (CUgraphExecUpdateResultInfo){.result = compare(&exec->graph, &copy)};
    result = info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? queue_wait(queue_last_issued())
                                                          : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (size_t i = 0; i < copy.count && result == CUDA_SUCCESS; i++) {
        result = graph_set(exec->graph.nodes[i], copy.nodes[i]->block, copy.nodes[i]->bytes);
    }
    graph_clear(&copy);
    return result;
}
