/*
 * Graphs: what was captured, made executable and launched.
 *
 * A launch issues each node to the stream that stands for the one it was captured from, after the
 * nodes of other streams that it comes after and no others. So nodes that no edge orders run beside
 * each other, and a capture that forgets an edge shows as wrong bytes. Launches of one executable
 * graph follow one another. What is changed in one counts from its next launch on.
 */
#include "tests/fake_cudart/streams.h"

#include <stdlib.h>
#include <string.h>

/* A node of an executable graph. */
struct step {
    const struct CUgraphNode_st *node; /* of the graph it was made from; may be gone */
    struct item item;
    size_t lane;
    size_t *after; /* of other lanes */
    size_t after_count;
    struct device_event *end; /* NULL: nothing on another lane comes after it */
};

struct CUgraphExec_st {
    struct CUgraphExec_st *next;
    struct step *steps;
    size_t step_count;
    capu_stream *lanes;
    struct item_list *items; /* per lane */
    size_t lane_count;
    struct device_event *begin;
    struct device_event **lane_ends;
    struct device_event *end; /* of the newest launch */
};

struct CUgraph_st *fake_graph_create(void)
{
    return calloc(1, sizeof(struct CUgraph_st));
}

struct CUgraphNode_st *fake_graph_add(struct CUgraph_st *graph, const struct item *item,
                                      size_t lane, const struct node_set *after)
{
    struct CUgraphNode_st *node = calloc(1, sizeof(*node));
    struct CUgraphNode_st **larger =
        realloc(graph->nodes, (graph->count + 1) * sizeof(struct CUgraphNode_st *));

    graph->nodes = larger != NULL ? larger : graph->nodes;
    if (node != NULL && after->count > 0) {
        node->after.nodes = malloc(after->count * sizeof(struct CUgraphNode_st *));
    }
    if (node == NULL || larger == NULL || (after->count > 0 && node->after.nodes == NULL)) {
        free(node);
        return NULL;
    }
    node->index = graph->count;
    node->lane = lane;
    memcpy(&node->item, item, sizeof(*item));
    for (; node->after.count < after->count; node->after.count++) {
        node->after.nodes[node->after.count] = after->nodes[node->after.count];
    }
    graph->nodes[graph->count++] = node;
    return node;
}

void fake_graph_free(struct CUgraph_st *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        fake_nodes_free(&graph->nodes[i]->after);
        free(graph->nodes[i]);
    }
    free(graph->nodes);
    free(graph);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    struct CUgraph_st **link = &fake.graphs;

    FAKE_RUNTIME_ENTER(cudaGraphDestroy);
    while (*link != NULL && *link != graph) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return fake_leave(cudaErrorInvalidValue);
    }
    *link = graph->next;
    fake_graph_free(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    FAKE_RUNTIME_ENTER(cudaGraphGetNodes);
    for (size_t i = 0; nodes != NULL && i < *count; i++) {
        nodes[i] = i < graph->count ? graph->nodes[i] : NULL;
    }
    *count = nodes == NULL || *count > graph->count ? graph->count : *count;
    return cudaSuccess;
}

static void free_executable(struct CUgraphExec_st *executable)
{
    for (size_t i = 0; i < executable->lane_count; i++) {
        device_stream_destroy(fake.host, executable->lanes[i]); /* waits for its work */
        fake_items_free(&executable->items[i]);
        device_event_destroy(fake.host, executable->lane_ends[i]);
    }
    for (size_t i = 0; i < executable->step_count; i++) {
        free(executable->steps[i].after);
        device_event_destroy(fake.host, executable->steps[i].end);
    }
    device_event_destroy(fake.host, executable->begin);
    device_event_destroy(fake.host, executable->end);
    free(executable->lane_ends);
    free(executable->items);
    free(executable->lanes);
    free(executable->steps);
    free(executable);
}

/* Notes that a step comes after one of another lane. */
static bool add_edge(struct CUgraphExec_st *executable, struct step *step, size_t before)
{
    struct step *earlier = &executable->steps[before];
    size_t *larger;

    if (earlier->lane == step->lane) {
        return true;
    }
    larger = realloc(step->after, (step->after_count + 1) * sizeof(*larger));
    if (larger == NULL) {
        return false;
    }
    step->after = larger;
    step->after[step->after_count++] = before;
    return earlier->end != NULL || device_event_create(fake.host, false, &earlier->end) == CAPU_OK;
}

static bool add_step(struct CUgraphExec_st *executable, const struct CUgraphNode_st *node)
{
    struct step *step = &executable->steps[executable->step_count++];

    step->node = node;
    memcpy(&step->item, &node->item, sizeof(step->item));
    step->lane = node->lane;
    for (size_t i = 0; i < node->after.count; i++) {
        if (!add_edge(executable, step, node->after.nodes[i]->index)) {
            return false;
        }
    }
    return true;
}

static bool add_lane(struct CUgraphExec_st *executable)
{
    size_t lane = executable->lane_count;

    if (device_stream_create(fake.host, DEVICE_COMPUTE, &executable->lanes[lane]) != CAPU_OK) {
        return false;
    }
    executable->lane_count++;
    return device_event_create(fake.host, false, &executable->lane_ends[lane]) == CAPU_OK;
}

static bool fill(struct CUgraphExec_st *executable, const struct CUgraph_st *graph)
{
    bool is_done = true;

    executable->steps = calloc(graph->count + 1, sizeof(*executable->steps));
    executable->lanes = calloc(graph->lane_count, sizeof(*executable->lanes));
    executable->items = calloc(graph->lane_count, sizeof(*executable->items));
    executable->lane_ends = calloc(graph->lane_count, sizeof(struct device_event *));
    if (executable->steps == NULL || executable->lanes == NULL || executable->items == NULL ||
        executable->lane_ends == NULL ||
        device_event_create(fake.host, false, &executable->begin) != CAPU_OK ||
        device_event_create(fake.host, false, &executable->end) != CAPU_OK) {
        return false;
    }
    for (size_t i = 0; i < graph->lane_count && is_done; i++) {
        is_done = add_lane(executable);
    }
    for (size_t i = 0; i < graph->count && is_done; i++) {
        is_done = add_step(executable, graph->nodes[i]);
    }
    return is_done;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags)
{
    struct CUgraphExec_st *made;

    FAKE_RUNTIME_ENTER(cudaGraphInstantiate);
    if (flags != 0) {
        return fake_leave(cudaErrorInvalidValue);
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return fake_leave(cudaErrorMemoryAllocation);
    }
    if (!fill(made, graph)) {
        free_executable(made);
        return fake_leave(cudaErrorMemoryAllocation);
    }
    fake_lock();
    made->next = fake.executables;
    fake.executables = made;
    fake_unlock();
    *executable = made;
    return cudaSuccess;
}

/* Whether the steps come after the same ones. Lanes are numbered in the order in which streams
   joined, which captures of the same calls have in common. */
static bool has_same_edges(const struct CUgraphExec_st *executable, const struct step *step,
                           const struct CUgraphNode_st *node)
{
    size_t count = 0;

    for (size_t i = 0; i < node->after.count; i++) {
        size_t before = node->after.nodes[i]->index;

        if (executable->steps[before].lane == node->lane) {
            continue;
        }
        if (count >= step->after_count || step->after[count] != before) {
            return false;
        }
        count++;
    }
    return count == step->after_count && step->lane == node->lane;
}

static enum cudaGraphExecUpdateResult compare(const struct CUgraphExec_st *executable,
                                              const struct CUgraph_st *graph,
                                              cudaGraphNode_t *culprit)
{
    if (graph->count != executable->step_count || graph->lane_count != executable->lane_count) {
        return cudaGraphExecUpdateErrorTopologyChanged;
    }
    for (size_t i = 0; i < graph->count; i++) {
        const struct step *step = &executable->steps[i];

        *culprit = graph->nodes[i];
        if (!has_same_edges(executable, step, graph->nodes[i])) {
            return cudaGraphExecUpdateErrorTopologyChanged;
        }
        if (step->item.kind != graph->nodes[i]->item.kind) {
            return cudaGraphExecUpdateErrorNodeTypeChanged;
        }
        if (step->item.kind == ITEM_COPY &&
            step->item.direction != graph->nodes[i]->item.direction) {
            return cudaGraphExecUpdateErrorParametersChanged;
        }
    }
    *culprit = NULL;
    return cudaGraphExecUpdateSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *result)
{
    FAKE_RUNTIME_ENTER(cudaGraphExecUpdate);
    *result = (cudaGraphExecUpdateResultInfo){0};
    result->result = compare(executable, graph, &result->errorNode);
    if (result->result != cudaGraphExecUpdateSuccess) {
        return fake_leave(cudaErrorGraphExecUpdateFailure);
    }
    for (size_t i = 0; i < graph->count; i++) {
        /* Nodes are still named as in the graph that the executable one was made from. */
        memcpy(&executable->steps[i].item, &graph->nodes[i]->item, sizeof(struct item));
    }
    return cudaSuccess;
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               void *to, const void *from, size_t bytes,
                                               enum cudaMemcpyKind kind)
{
    struct item item;
    int error;

    FAKE_RUNTIME_ENTER(cudaGraphExecMemcpyNodeSetParams1D);
    for (size_t i = 0; i < executable->step_count; i++) {
        struct step *step = &executable->steps[i];

        if (step->node != node) {
            continue;
        }
        error = step->item.kind == ITEM_COPY && step->item.direction == kind
                    ? fake_copy_item(to, from, bytes, kind, &item)
                    : cudaErrorInvalidValue;
        if (error == 0) {
            memcpy(&step->item, &item, sizeof(item));
        }
        return fake_leave(error);
    }
    return fake_leave(cudaErrorInvalidValue);
}

static int issue_step(struct CUgraphExec_st *executable, struct step *step, cudaStream_t stream)
{
    capu_stream host = executable->lanes[step->lane];
    capu_status status = CAPU_OK;
    int error = 0;

    for (size_t i = 0; i < step->after_count && status == CAPU_OK; i++) {
        status = device_stream_follow(fake.host, host, executable->steps[step->after[i]].end);
    }
    if (status == CAPU_OK && step->item.kind == ITEM_RECORD) {
        status = device_event_record(fake.host, step->item.event->host, host);
        step->item.event->is_recorded = true;
        step->item.event->capture_id = 0;
    } else if (status == CAPU_OK) {
        step->item.stream = stream;
        error = fake_issue(host, &executable->items[step->lane], &step->item);
    }
    if (status == CAPU_OK && error == 0 && step->end != NULL) {
        status = device_event_record(fake.host, step->end, host);
    }
    return status == CAPU_OK ? error : fake_error_of(status);
}

/* Everything of a launch follows what the stream has so far, and the launch before. */
static capu_status begin(struct CUgraphExec_st *executable, cudaStream_t stream)
{
    capu_status status = device_event_record(fake.host, executable->begin, stream->host);

    for (size_t i = 0; i < executable->lane_count && status == CAPU_OK; i++) {
        status = device_stream_follow(fake.host, executable->lanes[i], executable->begin);
        if (status == CAPU_OK) {
            status = device_stream_follow(fake.host, executable->lanes[i], executable->end);
        }
    }
    return status;
}

static capu_status end(struct CUgraphExec_st *executable, cudaStream_t stream)
{
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < executable->lane_count && status == CAPU_OK; i++) {
        status = device_event_record(fake.host, executable->lane_ends[i], executable->lanes[i]);
        if (status == CAPU_OK) {
            status = device_stream_follow(fake.host, stream->host, executable->lane_ends[i]);
        }
    }
    return status == CAPU_OK ? device_event_record(fake.host, executable->end, stream->host)
                             : status;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    capu_status status;
    int error = 0;

    FAKE_RUNTIME_ENTER(cudaGraphLaunch);
    if (stream->capture != NULL) {
        stream->capture->is_invalidated = true; /* CUDA makes a child graph of it; this does not */
        return fake_leave(cudaErrorStreamCaptureUnsupported);
    }
    status = begin(executable, stream);
    for (size_t i = 0; i < executable->step_count && status == CAPU_OK && error == 0; i++) {
        error = issue_step(executable, &executable->steps[i], stream);
    }
    if (status == CAPU_OK && error == 0) {
        status = end(executable, stream);
    }
    return fake_leave(error != 0 ? error : fake_error_of(status));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    struct CUgraphExec_st **link = &fake.executables;

    FAKE_RUNTIME_ENTER(cudaGraphExecDestroy);
    while (*link != NULL && *link != executable) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return fake_leave(cudaErrorInvalidValue);
    }
    fake_lock();
    *link = executable->next;
    fake_unlock();
    free_executable(executable);
    return cudaSuccess;
}

size_t fake_graphs_lanes(capu_stream *streams, size_t most)
{
    size_t count = 0;

    for (const struct CUgraphExec_st *at = fake.executables; at != NULL; at = at->next) {
        for (size_t i = 0; i < at->lane_count && count < most; i++) {
            streams[count++] = at->lanes[i];
        }
    }
    return count;
}

size_t fake_graphs_count(void)
{
    size_t count = 0;

    for (const struct CUgraph_st *at = fake.graphs; at != NULL; at = at->next) {
        count++;
    }
    for (const struct CUgraphExec_st *at = fake.executables; at != NULL; at = at->next) {
        count++;
    }
    return count;
}

void fake_graphs_finish(void)
{
    while (fake.executables != NULL) {
        struct CUgraphExec_st *next = fake.executables->next;

        free_executable(fake.executables);
        fake.executables = next;
    }
    while (fake.graphs != NULL) {
        struct CUgraph_st *next = fake.graphs->next;

        fake_graph_free(fake.graphs);
        fake.graphs = next;
    }
}
