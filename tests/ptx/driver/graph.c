/* Graphs and their nodes, see graph.h. A graph belongs to whoever captures it or holds it. */
#include "tests/ptx/driver/graph.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* A node that is another graph: `exec` runs it, see graph_run.c. */
static CUresult child_run(void *block)
{
    (void)block;
    return CUDA_SUCCESS;
}

static const struct {
    queue_function run;
    CUgraphNodeType type;
} types[] = {
    {launch_run, CU_GRAPH_NODE_TYPE_KERNEL}, {copy_run, CU_GRAPH_NODE_TYPE_MEMCPY},
    {fill_run, CU_GRAPH_NODE_TYPE_MEMSET},   {host_run, CU_GRAPH_NODE_TYPE_HOST},
    {child_run, CU_GRAPH_NODE_TYPE_GRAPH},
};

CUgraphNodeType graph_type(const struct CUgraphNode_st *node)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].run == node->run) {
            return types[i].type;
        }
    }
    return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
}

static void free_node(CUgraphNode node)
{
    if (node->child != NULL) {
        graph_clear(node->child);
        free(node->child);
    }
    free(node->block);
    free(node->parameters);
    free(node->before);
    free(node);
}

void graph_clear(struct CUgraph_st *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        free_node(graph->nodes[i]);
    }
    free(graph->nodes);
    *graph = (struct CUgraph_st){.nodes = NULL};
}

CUresult graph_set(CUgraphNode node, const void *block, size_t bytes)
{
    void *kept = malloc(bytes + 1);

    if (kept == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(kept, block, bytes);
    free(node->block);
    free(node->parameters);
    node->block = kept;
    node->bytes = bytes;
    node->parameters = NULL;
    return CUDA_SUCCESS;
}

static CUresult add_before(CUgraphNode node, const CUgraphNode *before, size_t count)
{
    CUgraphNode *all =
        realloc(node->before, (node->before_count + count + 1) * sizeof(CUgraphNode));

    if (all == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->before = all;
    if (count > 0) {
        memcpy(all + node->before_count, before, count * sizeof(CUgraphNode));
        node->before_count += count;
    }
    return CUDA_SUCCESS;
}

CUresult graph_add(CUgraph graph, queue_function run, const void *block, size_t bytes,
                   const CUgraphNode *before, size_t count, CUgraphNode *made)
{
    CUgraphNode node = calloc(1, sizeof(*node));

    if (node == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->graph = graph;
    node->run = run;
    if (graph_set(node, block, bytes) != CUDA_SUCCESS ||
        add_before(node, before, count) != CUDA_SUCCESS ||
        !array_reserve(&graph->nodes, &graph->capacity, graph->count + 1, sizeof(CUgraphNode))) {
        free_node(node);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    graph->nodes[graph->count++] = node;
    *made = node;
    return CUDA_SUCCESS;
}

/* Copies a node whose dependencies are all copied: `copies` are those of `graph`'s nodes. */
static CUresult copy_node(struct CUgraph_st *copy, CUgraph graph, size_t index, bool is_exec,
                          CUgraphNode *copies)
{
    CUgraphNode node = graph->nodes[index];
    CUgraphNode made;
    CUresult result = graph_add(copy, node->run, node->block, node->bytes, NULL, 0, &made);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    made->graph = is_exec ? NULL : copy;
    made->origin = node;
    copies[index] = made;
    for (size_t i = 0; i < node->before_count && result == CUDA_SUCCESS; i++) {
        for (size_t k = 0; k < graph->count; k++) {
            if (graph->nodes[k] == node->before[i]) {
                result = add_before(made, &copies[k], 1);
            }
        }
    }
    if (result == CUDA_SUCCESS && node->child != NULL) {
        made->child = calloc(1, sizeof(*made->child));
        result = made->child != NULL ? graph_copy(made->child, node->child, is_exec)
                                     : CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

/* Whether all nodes before it are marked. */
static bool is_ready(const struct CUgraphNode_st *node)
{
    for (size_t i = 0; i < node->before_count; i++) {
        if (!node->before[i]->is_marked) {
            return false;
        }
    }
    return true;
}

CUresult graph_copy(struct CUgraph_st *copy, CUgraph graph, bool is_exec)
{
    CUgraphNode *copies = calloc(graph->count + 1, sizeof(CUgraphNode));
    CUresult result = copies != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    bool has_moved = true;

    for (size_t i = 0; i < graph->count; i++) {
        graph->nodes[i]->is_marked = false;
    }
    while (has_moved && result == CUDA_SUCCESS) {
        has_moved = false;
        for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++) {
            CUgraphNode node = graph->nodes[i];

            if (!node->is_marked && is_ready(node)) {
                result = copy_node(copy, graph, i, is_exec, copies);
                node->is_marked = true;
                has_moved = true;
            }
        }
    }
    free(copies);
    if (result == CUDA_SUCCESS && copy->count != graph->count) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS) {
        graph_clear(copy);
    }
    return result;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    DRIVER_ENTER(driver_enter);
    if (graph == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *graph = calloc(1, sizeof(**graph));
    return *graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
    CUresult result;
    CUgraph made;

    DRIVER_ENTER(driver_enter);
    if (clone == NULL || graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = graph_copy(made, graph, false);
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    *clone = made;
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    DRIVER_ENTER(driver_enter);
    if (graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    graph_clear(graph);
    free(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    size_t asked;

    DRIVER_ENTER(driver_enter);
    if (graph == NULL || count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    asked = nodes != NULL ? *count : 0;
    for (size_t i = 0; i < asked; i++) {
        nodes[i] = i < graph->count ? graph->nodes[i] : NULL;
    }
    if (nodes == NULL || asked > graph->count) {
        *count = graph->count;
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    DRIVER_ENTER(driver_enter);
    if (node == NULL || type == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *type = graph_type(node);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                  size_t count, CUgraph child)
{
    CUresult result;

    DRIVER_ENTER(driver_enter);
    if (node == NULL || graph == NULL || child == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = graph_add(graph, child_run, "", 1, before, count, node);
    if (result == CUDA_SUCCESS) {
        (*node)->child = calloc(1, sizeof(struct CUgraph_st));
        result = (*node)->child != NULL ? graph_copy((*node)->child, child, false)
                                        : CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

/* Adds or changes a node of one type, and describes it. The block is made from the parameters. */
#define NODE_ADD(graph, run, make, params, before, count, node)                             \
    do {                                                                                    \
        void *block_ = NULL;                                                                \
        size_t bytes_ = 0;                                                                  \
        CUresult result_;                                                                   \
                                                                                            \
        DRIVER_ENTER(driver_enter_context);                                                 \
        if ((graph) == NULL || (node) == NULL || (params) == NULL) {                        \
            return CUDA_ERROR_INVALID_VALUE;                                                \
        }                                                                                   \
        result_ = make((params), &block_, &bytes_);                                         \
        if (result_ == CUDA_SUCCESS) {                                                      \
            result_ = graph_add((graph), (run), block_, bytes_, (before), (count), (node)); \
        }                                                                                   \
        free(block_);                                                                       \
        return result_;                                                                     \
    } while (0)
#define NODE_SET(node, run_, make, params)                                 \
    do {                                                                   \
        void *block_ = NULL;                                               \
        size_t bytes_ = 0;                                                 \
        CUresult result_;                                                  \
                                                                           \
        DRIVER_ENTER(driver_enter_context);                                \
        if ((node) == NULL || (node)->run != (run_) || (params) == NULL) { \
            return CUDA_ERROR_INVALID_VALUE;                               \
        }                                                                  \
        result_ = make((params), &block_, &bytes_);                        \
        if (result_ == CUDA_SUCCESS) {                                     \
            result_ = graph_set((node), block_, bytes_);                   \
        }                                                                  \
        free(block_);                                                      \
        return result_;                                                    \
    } while (0)
#define NODE_ENTER(node, run_, params)                                     \
    do {                                                                   \
        DRIVER_ENTER(driver_enter);                                        \
        if ((node) == NULL || (node)->run != (run_) || (params) == NULL) { \
            return CUDA_ERROR_INVALID_VALUE;                               \
        }                                                                  \
    } while (0)

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
    NODE_ADD(graph, launch_run, launch_make, params, before, count, node);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    NODE_SET(node, launch_run, launch_make, params);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
    NODE_ENTER(node, launch_run, params);
    return launch_describe(node, params);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, unsigned id, CUlaunchAttributeValue *value)
{
    NODE_ENTER(node, launch_run, value);
    return launch_attribute(node, id, value);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                              size_t count, const CUDA_MEMCPY3D *params, CUcontext context)
{
    (void)context;
    NODE_ADD(graph, copy_run, copy_make, params, before, count, node);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *params)
{
    NODE_SET(node, copy_run, copy_make, params);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *params)
{
    NODE_ENTER(node, copy_run, params);
    copy_describe(node->block, params);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS *params,
                              CUcontext context)
{
    (void)context;
    NODE_ADD(graph, fill_run, fill_make, params, before, count, node);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
    NODE_SET(node, fill_run, fill_make, params);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params)
{
    NODE_ENTER(node, fill_run, params);
    fill_describe(node->block, params);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                            size_t count, const CUDA_HOST_NODE_PARAMS *params)
{
    NODE_ADD(graph, host_run, host_make, params, before, count, node);
}
