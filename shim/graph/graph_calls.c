/*
 * Graphs: making, changing and launching them. The driver's own calls come first; what it has
 * accepted is read. Graphs that captures have made, and those that the program has built, are the
 * same here.
 */
#include "shim/graph/graph.h"

#include "shim/core/capture.h"
#include "shim/core/code.h"
#include "shim/core/core.h"
#include "shim/core/iteration.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/launch/launch.h"
#include "shim/launch/reach.h"

#include "base/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

CUresult graph_enqueue_fill(const struct memset_node *fill, CUstream stream)
{
    const struct real_calls *real = real_calls();

    switch (fill->element_bytes) {
    case 1:
        return real->cuMemsetD2D8Async(fill->to, fill->pitch, (unsigned char)fill->value,
                                       fill->width, fill->height, stream);
    case 2:
        return real->cuMemsetD2D16Async(fill->to, fill->pitch, (unsigned short)fill->value,
                                        fill->width, fill->height, stream);
    default:
        return real->cuMemsetD2D32Async(fill->to, fill->pitch, fill->value, fill->width,
                                        fill->height, stream);
    }
}

/* Nodes that the program makes or changes by itself, and copies and memsets of streams that
   capture. What the driver may look at is resident meanwhile. */

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
    HOLDING(graph_add_fill(fill, &operands, CAPU_READ), graph_enqueue_fill(fill, stream));
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
static void forget_node(CUgraphNode node)
{
    if (core_enter() == DRIVER_SUCCESS) {
        graph_known_drop(node);
        core_leave();
    }
}

CUresult on_cuGraphNodeSetParams(CUgraphNode node, void *params)
{
    forget_node(node);
    return real_calls()->cuGraphNodeSetParams(node, params);
}

CUresult on_cuGraphDestroyNode(CUgraphNode node)
{
    forget_node(node);
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
    forget_node(node);
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

/* Guarded by the core's lock. */
static struct {
    struct table by_handle; /* of executable graphs: the address of a struct graph */
    struct graph *first;
    unsigned count;
} graphs;

const struct graph *graph_list(void)
{
    return graphs.first;
}

static struct graph *find_graph(CUgraphExec exec)
{
    uint64_t value;

    return graphs.by_handle.count > 0 &&
                   table_get(&graphs.by_handle, (uint64_t)(uintptr_t)exec, &value)
               ? (struct graph *)(uintptr_t)value
               : NULL;
}

/* A record for a new executable graph. NULL: no host memory. */
static struct graph *add_graph(CUgraphExec exec)
{
    struct graph *graph = calloc(1, sizeof(*graph));
    uint64_t key = (uint64_t)(uintptr_t)exec;

    if (graph == NULL || !table_reserve(&graphs.by_handle, graphs.by_handle.count + 1)) {
        free(graph);
        return NULL;
    }
    graph->number = ++graphs.count;
    snprintf(graph->name, sizeof(graph->name), "graph %u", graph->number);
    graph->next = graphs.first;
    graphs.first = graph;
    table_remove(&graphs.by_handle, key);
    table_put(&graphs.by_handle, key, (uint64_t)(uintptr_t)graph);
    return graph;
}

/* Prepares kernels whose slices are not there yet, which the lock must not be held for. */
static CUresult prepare_kernels(struct graph *graph)
{
    CUresult result = DRIVER_SUCCESS;

    for (size_t i = 0; i < graph->count && result == DRIVER_SUCCESS; i++) {
        struct code_kernel *kernel = graph->nodes[i].kernel;

        if (kernel != NULL && kernel->reason == NULL && reach_is_due(kernel)) {
            core_leave();
            reach_prepare(kernel);
            result = core_enter();
        }
    }
    return result;
}

/* Reads what an executable graph is made of. What fails has not been done: it is destroyed. */
static CUresult note_made(CUgraphExec *exec, CUgraph from)
{
    struct graph *graph;
    CUresult result = core_enter();

    if (result == DRIVER_SUCCESS) {
        graph = add_graph(*exec);
        result = graph != NULL ? graph_read(graph, from) : DRIVER_OUT_OF_MEMORY;
        if (result != DRIVER_SUCCESS && graph != NULL) {
            table_remove(&graphs.by_handle, (uint64_t)(uintptr_t)*exec);
            graph_forget(graph);
        }
        core_leave();
    }
    if (result != DRIVER_SUCCESS) {
        (void)real_calls()->cuGraphExecDestroy(*exec);
        *exec = NULL;
    }
    return result;
}

/* What is known about a node that is changed. NULL: the graph is not known, or there is no host
   memory, and then the graph is open. */
static struct graph_node *change_node(CUgraphExec exec, CUgraphNode node)
{
    struct graph *graph = find_graph(exec);
    struct graph_node *own = graph != NULL ? graph_change(graph, node) : NULL;

    if (graph != NULL && own == NULL) {
        graph->reason = "a change that could not be noted";
    }
    return own;
}

/* The first two versions. */
CUresult on_cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *text,
                               size_t bytes)
{
    CUresult result = real_calls()->cuGraphInstantiate(exec, graph, failed, text, bytes);

    return result == DRIVER_SUCCESS ? note_made(exec, graph) : result;
}

CUresult on_cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *text,
                                  size_t bytes)
{
    CUresult result = real_calls()->cuGraphInstantiate_v2(exec, graph, failed, text, bytes);

    return result == DRIVER_SUCCESS ? note_made(exec, graph) : result;
}

CUresult on_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    CUresult result = real_calls()->cuGraphInstantiateWithFlags(exec, graph, flags);

    return result == DRIVER_SUCCESS ? note_made(exec, graph) : result;
}

/* The driver uploads the graph to the stream that is named there. */
CUresult on_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                         struct instantiate_params *params)
{
    CUstream stream = NULL;
    CUresult result;

    if (params != NULL) {
        stream = params->upload_stream;
        params->upload_stream = core_stream(stream);
    }
    result = real_calls()->cuGraphInstantiateWithParams(exec, graph, params);
    if (params != NULL) {
        params->upload_stream = stream;
    }
    return result == DRIVER_SUCCESS ? note_made(exec, graph) : result;
}

/* Launches of it that are under way keep what they need. */
CUresult on_cuGraphExecDestroy(CUgraphExec exec)
{
    struct graph *graph;
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    graph = find_graph(exec);
    if (graph != NULL) {
        table_remove(&graphs.by_handle, (uint64_t)(uintptr_t)exec);
        graph_forget(graph);
    }
    core_leave();
    return real_calls()->cuGraphExecDestroy(exec);
}

/* The nodes are those of the other graph now. Later changes of single nodes still name those of the
   first graph, and it is not known which one that is: what they touch then counts as well. */
CUresult on_cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, void *info)
{
    CUresult result = real_calls()->cuGraphExecUpdate_v2(exec, graph, info);
    struct graph *own;

    if (result != DRIVER_SUCCESS || (result = core_enter()) != DRIVER_SUCCESS) {
        return result;
    }
    own = find_graph(exec);
    if (own != NULL && graph_read(own, graph) != DRIVER_SUCCESS) {
        own->reason = "an update that could not be read";
    }
    core_leave();
    return result;
}

CUresult on_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                              const struct kernel_node *params)
{
    CUresult result = real_calls()->cuGraphExecKernelNodeSetParams_v2(exec, node, params);
    struct graph_node *own;

    if (result != DRIVER_SUCCESS || (result = core_enter()) != DRIVER_SUCCESS) {
        return result;
    }
    own = change_node(exec, node);
    if (own != NULL) {
        graph_note_kernel(own, params);
    }
    core_leave();
    return result;
}

CUresult on_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const struct memset_node *params, CUcontext context)
{
    struct operands operands = {0};
    struct graph_node *own;
    CUresult result = params != NULL ? core_enter() : DRIVER_INVALID_VALUE;

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    graph_add_fill(params, &operands, CAPU_READ);
    result = graph_hold(&operands);
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    result = real_calls()->cuGraphExecMemsetNodeSetParams(exec, node, params, context);
    own = result == DRIVER_SUCCESS ? change_node(exec, node) : NULL;
    if (own != NULL) {
        graph_note_fill(own, params);
    }
    return graph_release(&operands, result);
}

CUresult on_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const struct copy_3d *params, CUcontext context)
{
    struct operands operands = {0};
    struct graph_node *own;
    CUresult result = params != NULL ? core_enter() : DRIVER_INVALID_VALUE;

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    graph_add_copy(params, &operands, CAPU_READ);
    result = graph_hold(&operands);
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    result = real_calls()->cuGraphExecMemcpyNodeSetParams(exec, node, params, context);
    own = result == DRIVER_SUCCESS ? change_node(exec, node) : NULL;
    if (own != NULL) {
        graph_note_copy(own, params);
    }
    return graph_release(&operands, result);
}

/* What the node does afterwards is not read. */
CUresult on_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, void *params)
{
    CUresult result = real_calls()->cuGraphExecNodeSetParams(exec, node, params);
    struct graph *graph;

    if (result != DRIVER_SUCCESS || (result = core_enter()) != DRIVER_SUCCESS) {
        return result;
    }
    graph = find_graph(exec);
    if (graph != NULL) {
        graph->reason = "a node that was changed by cuGraphExecNodeSetParams";
    }
    core_leave();
    return result;
}

/* Whether a kernel of the graph cannot run here. */
static bool is_refused(const struct graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct graph_node *node = &graph->nodes[i];

        if (node->kernel != NULL && launch_is_refused(node->kernel, &node->launch)) {
            return true;
        }
    }
    return false;
}

/* Counts a launch for the report, and its kernels' launches. */
static void count_graph(struct graph *graph, const struct operands *operands)
{
    graph->launch_count++;
    graph->most_bytes = operands->bytes > graph->most_bytes ? operands->bytes : graph->most_bytes;
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i].kernel != NULL) {
            graph->nodes[i].kernel->launch_count++;
        }
    }
}

static void report_no_room(const struct graph *graph, const struct operands *operands,
                           const char *open)
{
    if (open != NULL) {
        log_line("all %" PRIu64 " bytes are needed for %s, which is open: %s; what to do: "
                 "docs/unmodified.md",
                 operands->bytes, graph->name, open);
    } else {
        log_line("%" PRIu64 " bytes are needed at once for %s, which has %zu nodes",
                 operands->bytes, graph->name, graph->count);
    }
}

/* Begins the access of a launch. Pre: entered. */
static CUresult begin_graph(struct graph *graph)
{
    struct operands operands = {0};
    const char *open = NULL;
    CUresult result;

    if (is_refused(graph)) {
        return DRIVER_NOT_SUPPORTED;
    }
    result = graph_add(graph, &operands, &open);
    if (result != DRIVER_SUCCESS) {
        operands_finish(&operands);
        return result;
    }
    iteration_event(core_context(), graph->name, PERIOD_LAUNCH, operands.pointers);
    result = core_begin(&operands, graph->name);
    operands_finish(&operands);
    if (result == DRIVER_OUT_OF_MEMORY) {
        report_no_room(graph, &operands, open);
    }
    if (result == DRIVER_SUCCESS) {
        if (open != NULL || graph_may_store_variables(graph)) {
            code_note_stored();
        }
        count_graph(graph, &operands);
    }
    return result;
}

CUresult on_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    struct graph *graph;
    CUresult result;

    if (capture_takes(stream)) {
        return real_calls()->cuGraphLaunch(exec, stream);
    }
    result = core_enter();
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    graph = find_graph(exec);
    if (graph == NULL) {
        graph = add_graph(exec);
        if (graph != NULL) {
            graph->reason = "made in a way that is not followed";
        }
    }
    result = graph == NULL ? DRIVER_OUT_OF_MEMORY : prepare_kernels(graph);
    if (result != DRIVER_SUCCESS) {
        core_leave();
        return result;
    }
    result = begin_graph(graph);
    if (result == DRIVER_SUCCESS) {
        result = core_end(real_calls()->cuGraphLaunch(exec, core_stream(stream)), graph->name);
    } else {
        graph->failed_count++;
    }
    core_leave();
    return result;
}

CUresult on_cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    return real_calls()->cuGraphUpload(exec, capture_takes(stream) ? stream : core_stream(stream));
}
