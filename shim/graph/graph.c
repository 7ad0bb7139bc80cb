/* What the nodes of graphs do, see graph.h. */
#include "shim/graph/graph.h"

#include "shim/core/alloc.h"
#include "shim/core/code.h"
#include "shim/core/iteration.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/symbol.h"
#include "shim/launch/reach.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nodes of known calls. */

/* Guarded by the core's lock. */
static struct {
    struct entry {
        CUgraphNode node;
        struct graph_known *known;
    } * list;
    size_t count, capacity;
} noted;

CUresult graph_list_nodes(CUgraph graph, CUgraphNode **list, size_t *count)
{
    CUresult result = real_calls()->cuGraphGetNodes(graph, NULL, count);

    *list = NULL;
    if (result != DRIVER_SUCCESS || *count == 0) {
        return result;
    }
    *list = calloc(*count, sizeof(**list));
    return *list != NULL ? real_calls()->cuGraphGetNodes(graph, *list, count)
                         : DRIVER_OUT_OF_MEMORY;
}

static void release_known(struct graph_known *known)
{
    if (known != NULL && --known->holders == 0) {
        free(known);
    }
}

/* The graph that a stream captures; NULL: none. */
static CUgraph graph_of(CUstream stream)
{
    const CUgraphNode *last = NULL;
    unsigned status = CAPTURE_NONE;
    CUgraph graph = NULL;
    uint64_t id;
    size_t count;

    return real_calls()->cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &last, &count) ==
                       DRIVER_SUCCESS &&
                   status == CAPTURE_ACTIVE
               ? graph
               : NULL;
}

CUresult graph_known_begin(CUstream stream, const struct operands *operands,
                           struct graph_known_call *call)
{
    size_t bytes = operands->count * sizeof(operands->list[0]);
    struct graph_known *known = !operands->has_failed ? malloc(sizeof(*known) + bytes) : NULL;

    if (known == NULL) {
        return DRIVER_OUT_OF_MEMORY;
    }
    *known =
        (struct graph_known){.holders = 1, .graph = graph_of(stream), .count = operands->count};
    if (bytes > 0) {
        memcpy(known->operands, operands->list, bytes);
    }
    *call = (struct graph_known_call){.known = known};
    if (known->graph != NULL &&
        graph_list_nodes(known->graph, &call->before, &call->before_count) != DRIVER_SUCCESS) {
        known->graph = NULL; /* its nodes remain unknown */
    }
    return DRIVER_SUCCESS;
}

static int by_handle(const void *one, const void *other)
{
    CUgraphNode a = *(const CUgraphNode *)one;
    CUgraphNode b = *(const CUgraphNode *)other;

    return (a > b) - (a < b);
}

static void note_node(CUgraphNode node, struct graph_known *known)
{
    graph_known_drop(node);
    if (array_reserve(&noted.list, &noted.capacity, noted.count + 1, sizeof(noted.list[0]))) {
        noted.list[noted.count++] = (struct entry){node, known};
        known->holders++;
    }
}

void graph_known_end(const struct graph_known_call *call, bool has_succeeded)
{
    struct graph_known *known = call->known;
    CUgraphNode *after = NULL;
    size_t count = 0;

    if (has_succeeded && known->graph != NULL &&
        graph_list_nodes(known->graph, &after, &count) == DRIVER_SUCCESS) {
        if (call->before_count > 0) {
            qsort(call->before, call->before_count, sizeof(CUgraphNode), by_handle);
        }
        for (size_t i = 0; i < count; i++) {
            if (call->before_count == 0 || bsearch(&after[i], call->before, call->before_count,
                                                   sizeof(CUgraphNode), by_handle) == NULL) {
                note_node(after[i], known);
            }
        }
    }
    free(after);
    free(call->before);
    release_known(known);
}

/* What is known of a node of a graph; a holder more. NULL: nothing is. */
static struct graph_known *take_known(CUgraph graph, CUgraphNode node)
{
    for (size_t i = 0; i < noted.count; i++) {
        if (noted.list[i].node == node && noted.list[i].known->graph == graph) {
            noted.list[i].known->holders++;
            return noted.list[i].known;
        }
    }
    return NULL;
}

static void drop_at(size_t index)
{
    release_known(noted.list[index].known);
    noted.list[index] = noted.list[--noted.count];
}

void graph_known_drop(CUgraphNode node)
{
    for (size_t i = noted.count; i-- > 0;) {
        if (noted.list[i].node == node) {
            drop_at(i);
        }
    }
}

void graph_known_drop_graph(CUgraph graph)
{
    for (size_t i = noted.count; i-- > 0;) {
        if (noted.list[i].known->graph == graph) {
            drop_at(i);
        }
    }
}

void graph_known_drop_all(void)
{
    while (noted.count > 0) {
        drop_at(noted.count - 1);
    }
}

static void finish_node(struct graph_node *node)
{
    free(node->bytes);
    release_known(node->known);
    node->known = NULL;
    node->bytes = NULL;
    node->kernel = NULL;
}

void graph_forget(struct graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        finish_node(&graph->nodes[i]);
    }
    free(graph->nodes);
    graph->nodes = NULL;
    graph->count = graph->capacity = 0;
}

/* Keeps the parameters of a closed kernel; one that lacks them is taken as open. */
static void keep_parameters(struct graph_node *node, const struct parameters *given)
{
    const struct kernel *roles = node->kernel->roles;
    unsigned char block[PARAMETERS_BYTES_MOST];

    if (!parameters_block(given, roles, block)) {
        return;
    }
    node->bytes = malloc(roles->parameter_bytes + 1);
    if (node->bytes == NULL) {
        return;
    }
    memcpy(node->bytes, block, roles->parameter_bytes);
    node->launch.parameters =
        (struct parameters){.bytes = node->bytes, .byte_count = roles->parameter_bytes};
}

/* Clusters, and cooperative launches, are attributes of the node. */
static void read_attributes(struct graph_node *node)
{
    struct launch_attribute cluster = {.id = ATTRIBUTE_CLUSTER};
    struct launch_attribute cooperative = {.id = ATTRIBUTE_COOPERATIVE};
    const struct real_calls *real = real_calls();

    if (real->cuGraphKernelNodeGetAttribute(node->handle, cluster.id, &cluster.value) ==
        DRIVER_SUCCESS) {
        memcpy(node->launch.cluster, cluster.value.cluster, sizeof(node->launch.cluster));
    }
    node->launch.is_cooperative =
        real->cuGraphKernelNodeGetAttribute(node->handle, cooperative.id, &cooperative.value) ==
            DRIVER_SUCCESS &&
        cooperative.value.cooperative != 0;
}

void graph_note_kernel(struct graph_node *node, const struct kernel_node *params)
{
    struct parameters given = parameters_of(params->parameters, params->extra);

    finish_node(node);
    node->type = NODE_KERNEL;
    node->kernel = params->function != NULL ? code_find(params->function) : NULL;
    if (node->kernel == NULL && params->kernel != NULL) {
        node->kernel = code_find(params->kernel);
    }
    node->launch = (struct launch){.shared_bytes = params->shared_bytes};
    memcpy(node->launch.grid, params->grid, sizeof(node->launch.grid));
    memcpy(node->launch.block, params->block, sizeof(node->launch.block));
    read_attributes(node);
    if (node->kernel != NULL && node->kernel->reason == NULL) {
        keep_parameters(node, &given);
    }
}

void graph_note_fill(struct graph_node *node, const struct memset_node *params)
{
    finish_node(node);
    node->type = NODE_MEMSET;
    node->fill = *params;
}

void graph_note_copy(struct graph_node *node, const struct copy_3d *params)
{
    finish_node(node);
    node->type = NODE_MEMCPY;
    node->copy = *params;
}

struct graph_node *graph_change(struct graph *graph, CUgraphNode handle)
{
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i].handle == handle) {
            return &graph->nodes[i];
        }
    }
    if (!array_reserve(&graph->nodes, &graph->capacity, graph->count + 1,
                       sizeof(graph->nodes[0]))) {
        return NULL;
    }
    graph->nodes[graph->count] = (struct graph_node){.handle = handle};
    return &graph->nodes[graph->count++];
}

/* False: the driver does not say what it does. */
static bool read_node(struct graph_node *node)
{
    struct kernel_node kernel = {.function = NULL};
    struct memset_node fill;
    struct copy_3d copy;

    switch (node->type) {
    case NODE_KERNEL:
        if (real_calls()->cuGraphKernelNodeGetParams_v2(node->handle, &kernel) != DRIVER_SUCCESS) {
            return false;
        }
        graph_note_kernel(node, &kernel);
        return true;
    case NODE_MEMSET:
        if (real_calls()->cuGraphMemsetNodeGetParams(node->handle, &fill) != DRIVER_SUCCESS) {
            return false;
        }
        graph_note_fill(node, &fill);
        return true;
    case NODE_MEMCPY:
        if (real_calls()->cuGraphMemcpyNodeGetParams(node->handle, &copy) != DRIVER_SUCCESS) {
            return false;
        }
        graph_note_copy(node, &copy);
        return true;
    default:
        return true;
    }
}

/* Why a node makes its graph open; NULL: it does not. */
static const char *open_reason(unsigned type)
{
    switch (type) {
    case NODE_KERNEL:
    case NODE_MEMCPY:
    case NODE_MEMSET:
    case NODE_HOST:
    case NODE_EMPTY:
    case NODE_WAIT_EVENT:
    case NODE_RECORD_EVENT:
        return NULL;
    case NODE_GRAPH:
        return "a node that is a graph";
    case NODE_ALLOC:
    case NODE_FREE:
        return "a node that allocates or frees memory";
    case NODE_CONDITIONAL:
        return "a conditional node";
    default:
        return "a node of an unknown type";
    }
}

static bool is_refused(unsigned type)
{
    const char *what = type == NODE_SIGNAL || type == NODE_WAIT ? "external semaphores in a graph"
                       : type == NODE_MEMORY_OPERATIONS ? "stream memory operations in a graph"
                                                        : NULL;

    if (what != NULL) {
        symbol_note_refusal(what);
        log_line("refused: %s, which programs cannot use under a budget (docs/unmodified.md)",
                 what);
    }
    return what != NULL;
}

CUresult graph_read(struct graph *graph, CUgraph from)
{
    CUgraphNode *list;
    size_t count = 0;
    CUresult result = graph_list_nodes(from, &list, &count);

    graph_forget(graph);
    graph->reason = NULL;
    for (size_t i = 0; i < count && result == DRIVER_SUCCESS; i++) {
        struct graph_node *node = graph_change(graph, list[i]);

        if (node == NULL) {
            result = DRIVER_OUT_OF_MEMORY;
            break;
        }
        node->known = take_known(from, list[i]);
        if (node->known != NULL) {
            continue;
        }
        if (real_calls()->cuGraphNodeGetType(list[i], &node->type) != DRIVER_SUCCESS) {
            graph->reason = "a node that the driver does not describe";
        } else if (is_refused(node->type)) {
            result = DRIVER_NOT_SUPPORTED;
        } else if (open_reason(node->type) != NULL) {
            graph->reason = open_reason(node->type);
        } else if (!read_node(node)) {
            graph->reason = "a node that the driver does not describe";
        }
    }
    free(list);
    return result;
}

void graph_add_fill(const struct memset_node *fill, struct operands *operands, capu_role role)
{
    uint64_t row = (uint64_t)fill->width * fill->element_bytes;

    if (row > 0 && fill->height > 0) {
        operands_add_range(operands, fill->to,
                           (fill->height > 1 ? (fill->height - 1) * fill->pitch : 0) + row, role);
    }
}

/* One side, from its first byte to its last. Host memory and arrays are not ours. */
static void add_side(struct operands *operands, unsigned type, uint64_t address,
                     const size_t origin[3], size_t pitch, size_t rows, const size_t size[3],
                     capu_role role)
{
    uint64_t slice = (uint64_t)pitch * rows;

    if (type == MEMORY_DEVICE || type == MEMORY_UNIFIED) {
        operands_add_range(operands, address + origin[2] * slice + origin[1] * pitch + origin[0],
                           (size[2] - 1) * slice + (size[1] - 1) * pitch + size[0], role);
    }
}

void graph_add_copy(const struct copy_3d *copy, struct operands *operands, capu_role role)
{
    const size_t size[3] = {copy->width, copy->height, copy->depth};
    const size_t from[3] = {copy->from_x, copy->from_y, copy->from_z};
    const size_t to[3] = {copy->to_x, copy->to_y, copy->to_z};

    if (size[0] == 0 || size[1] == 0 || size[2] == 0) {
        return;
    }
    add_side(operands, copy->from_type, copy->from_device, from, copy->from_pitch,
             copy->from_height, size, CAPU_READ);
    add_side(operands, copy->to_type, copy->to_device, to, copy->to_pitch, copy->to_height, size,
             role);
}

/* Why all memory is needed; NULL: it is not. Valid until the next call. */
static const char *why_open(const struct graph *graph)
{
    static char text[256]; /* guarded by the core's lock */

    for (size_t i = 0; i < graph->count && graph->reason == NULL; i++) {
        const struct graph_node *node = &graph->nodes[i];

        if (node->type != NODE_KERNEL || node->known != NULL) {
            continue;
        }
        if (node->kernel == NULL) {
            return "a kernel of a CUDA library, or loaded in a way that is not followed";
        }
        if (node->kernel->reason != NULL || node->bytes == NULL) {
            snprintf(text, sizeof(text), "the kernel %s: %s", node->kernel->name,
                     node->kernel->reason != NULL ? node->kernel->reason
                                                  : "its parameters are not known");
            return text;
        }
    }
    return graph->reason;
}

static CUresult add_kernel(const struct graph_node *node, struct operands *operands)
{
    struct operands own = {0};
    CUresult result = reach_add(node->kernel, &node->launch, &own);

    if (own.stores_elsewhere) {
        code_note_stored();
    }
    if (own.bytes > node->kernel->most_bytes) {
        node->kernel->most_bytes = own.bytes;
    }
    operands_add_list(operands, own.list, own.count);
    operands->pointers = iteration_join_pointers(operands->pointers, own.pointers);
    operands->has_failed |= own.has_failed;
    operands_finish(&own);
    return result;
}

static CUresult add_node(const struct graph_node *node, struct operands *operands)
{
    if (node->known != NULL) {
        for (size_t i = 0; i < node->known->count; i++) {
            const capu_operand *operand = &node->known->operands[i];

            operands_add_range(operands, (uintptr_t)operand->address, operand->bytes,
                               (capu_role)operand->role);
        }
        return DRIVER_SUCCESS;
    }
    switch (node->type) {
    case NODE_KERNEL:
        return add_kernel(node, operands);
    case NODE_MEMSET:
        graph_add_fill(&node->fill, operands, CAPU_UPDATE);
        return DRIVER_SUCCESS;
    case NODE_MEMCPY:
        graph_add_copy(&node->copy, operands, CAPU_UPDATE);
        return DRIVER_SUCCESS;
    default:
        return DRIVER_SUCCESS;
    }
}

CUresult graph_add(const struct graph *graph, struct operands *operands, const char **open)
{
    CUresult result = DRIVER_SUCCESS;

    *open = why_open(graph);
    if (*open != NULL) {
        operands_add_all(operands);
    }
    for (size_t i = 0; i < graph->count && *open == NULL && result == DRIVER_SUCCESS; i++) {
        result = add_node(&graph->nodes[i], operands);
    }
    if (result == DRIVER_SUCCESS && !operands->has_failed) {
        operands_merge(operands, false);
    }
    return result != DRIVER_SUCCESS ? result
           : operands->has_failed   ? DRIVER_OUT_OF_MEMORY
                                    : DRIVER_SUCCESS;
}

bool graph_may_store_variables(const struct graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        bool is_device = node->copy.to_type != MEMORY_HOST;

        if (node->known == NULL &&
            ((node->type == NODE_KERNEL && node->kernel->roles->writes_variables) ||
             (node->type == NODE_MEMSET && alloc_find(node->fill.to) == NULL) ||
             (node->type == NODE_MEMCPY && is_device &&
              alloc_find(node->copy.to_device) == NULL))) {
            return true;
        }
    }
    return false;
}
