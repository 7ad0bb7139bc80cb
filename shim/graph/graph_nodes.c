/* Nodes that the program makes or changes by itself, and copies and memsets of streams that
   capture. What the driver may look at is resident meanwhile. */
#include "shim/core/core.h"
#include "shim/core/fill_enqueue.h"
#include "shim/driver/handlers.h"
#include "shim/driver/real.h"
#include "shim/graph/graph.h"
#include "shim/graph/graph_known.h"
#include "shim/launch/launch.h"

static const char name[] = "node of a graph";

CUresult graph_hold(struct operands *operands)
{
    CUresult result =
        operands->has_failed || operands->bytes > 0 ? core_begin(operands, name) : DRIVER_SUCCESS;

    operands_finish(operands);
    if (result != DRIVER_SUCCESS) {
        core_leave();
    }
    return result;
}

CUresult graph_release(const struct operands *operands, CUresult result)
{
    if (operands->bytes > 0) {
        result = core_end(result, name);
    }
    core_leave();
    return result;
}

/* Calls the driver while what `add` adds is resident. */
#define HOLDING(add, call)                                                           \
    do {                                                                             \
        struct operands operands = {0};                                              \
        CUresult result = core_enter();                                              \
                                                                                     \
        if (result != DRIVER_SUCCESS) {                                              \
            return result;                                                           \
        }                                                                            \
        add;                                                                         \
        result = graph_hold(&operands);                                              \
        return result == DRIVER_SUCCESS ? graph_release(&operands, (call)) : result; \
    } while (0)

CUresult graph_capture_copy(uint64_t to, uint64_t from, size_t bytes, CUstream stream)
{
    const struct copy_3d copy = {.from_type = MEMORY_UNIFIED,
                                 .from_device = from,
                                 .to_type = MEMORY_UNIFIED,
                                 .to_device = to,
                                 .width = bytes,
                                 .height = 1,
                                 .depth = 1};

    HOLDING(graph_add_copy(&copy, &operands, CAPU_READ),
            real_calls()->cuMemcpyAsync(to, from, bytes, stream));
}

CUresult graph_capture_2d(const struct copy_2d *copy, CUstream stream)
{
    const struct copy_3d box = {.from_x = copy->from_x,
                                .from_y = copy->from_y,
                                .from_type = copy->from_type,
                                .from_device = copy->from_device,
                                .from_pitch = copy->from_pitch,
                                .to_x = copy->to_x,
                                .to_y = copy->to_y,
                                .to_type = copy->to_type,
                                .to_device = copy->to_device,
                                .to_pitch = copy->to_pitch,
                                .width = copy->width,
                                .height = copy->height,
                                .depth = 1};

    HOLDING(graph_add_copy(&box, &operands, CAPU_READ),
            real_calls()->cuMemcpy2DAsync_v2(copy, stream));
}

CUresult graph_capture_3d(const struct copy_3d *copy, CUstream stream)
{
    HOLDING(graph_add_copy(copy, &operands, CAPU_READ),
            real_calls()->cuMemcpy3DAsync_v2(copy, stream));
}

CUresult graph_capture_fill(const struct memset_node *fill, CUstream stream)
{
    HOLDING(graph_add_fill(fill, &operands, CAPU_READ), fill_enqueue(fill, stream));
}

/* How the driver calls the kernel of a node that was made from the program's handle. */
static CUresult learn(CUresult result, CUgraphNode node, const struct kernel_node *params)
{
    if (result == DRIVER_SUCCESS && params != NULL) {
        launch_learn_node(node, params->function != NULL ? (const void *)params->function
                                                         : (const void *)params->kernel);
    }
    return result;
}

CUresult on_cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                    size_t count, const struct kernel_node *params)
{
    CUresult result = real_calls()->cuGraphAddKernelNode_v2(node, graph, before, count, params);

    return result == DRIVER_SUCCESS ? learn(result, *node, params) : result;
}

/* What was known about a node does not hold any more. */
static void forget(CUgraphNode node)
{
    if (core_enter() == DRIVER_SUCCESS) {
        graph_known_drop(node);
        core_leave();
    }
}

CUresult on_cuGraphNodeSetParams(CUgraphNode node, void *params)
{
    forget(node);
    return real_calls()->cuGraphNodeSetParams(node, params);
}

CUresult on_cuGraphDestroyNode(CUgraphNode node)
{
    forget(node);
    return real_calls()->cuGraphDestroyNode(node);
}

CUresult on_cuGraphDestroy(CUgraph graph)
{
    if (core_enter() == DRIVER_SUCCESS) {
        graph_known_drop_graph(graph);
        core_leave();
    }
    return real_calls()->cuGraphDestroy(graph);
}

CUresult on_cuGraphKernelNodeSetParams_v2(CUgraphNode node, const struct kernel_node *params)
{
    forget(node);
    return learn(real_calls()->cuGraphKernelNodeSetParams_v2(node, params), node, params);
}

CUresult on_cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                 size_t count, const struct copy_3d *params, CUcontext context)
{
    if (params == NULL) {
        return DRIVER_INVALID_VALUE;
    }
    HOLDING(graph_add_copy(params, &operands, CAPU_READ),
            real_calls()->cuGraphAddMemcpyNode(node, graph, before, count, params, context));
}

CUresult on_cuGraphMemcpyNodeSetParams(CUgraphNode node, const struct copy_3d *params)
{
    if (params == NULL) {
        return DRIVER_INVALID_VALUE;
    }
    HOLDING(graph_add_copy(params, &operands, CAPU_READ),
            real_calls()->cuGraphMemcpyNodeSetParams(node, params));
}

CUresult on_cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                 size_t count, const struct memset_node *params, CUcontext context)
{
    if (params == NULL) {
        return DRIVER_INVALID_VALUE;
    }
    HOLDING(graph_add_fill(params, &operands, CAPU_READ),
            real_calls()->cuGraphAddMemsetNode(node, graph, before, count, params, context));
}

CUresult on_cuGraphMemsetNodeSetParams(CUgraphNode node, const struct memset_node *params)
{
    if (params == NULL) {
        return DRIVER_INVALID_VALUE;
    }
    HOLDING(graph_add_fill(params, &operands, CAPU_READ),
            real_calls()->cuGraphMemsetNodeSetParams(node, params));
}
