/* Nodes of known calls, see graph_known.h. */
#include "shim/graph/graph_known.h"

#include "shim/driver/real.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

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

void graph_known_release(struct graph_known *known)
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

static void note(CUgraphNode node, struct graph_known *known)
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
                note(after[i], known);
            }
        }
    }
    free(after);
    free(call->before);
    graph_known_release(known);
}

struct graph_known *graph_known_take(CUgraph graph, CUgraphNode node)
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
    graph_known_release(noted.list[index].known);
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
