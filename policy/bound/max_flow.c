/* Phases: levels are distances to the nearest node where flow can leave, found breadth-first
   against the edges; then paths along falling levels are filled until none is left. */
#include "policy/bound/max_flow.h"

#include <stdlib.h>
#include <string.h>

capu_status max_flow_init(struct max_flow *flow, uint32_t nodes, uint32_t edges)
{
    size_t node_room = (size_t)nodes + 1;
    size_t edge_room = 2 * (size_t)edges + 1;

    *flow = (struct max_flow){.node_count = nodes,
                              .enters = calloc(node_room, sizeof(int64_t)),
                              .leaves = calloc(node_room, sizeof(int64_t)),
                              .newest = malloc(node_room * sizeof(uint32_t)),
                              .level = malloc(node_room * sizeof(uint32_t)),
                              .next = malloc(node_room * sizeof(uint32_t)),
                              .queue = malloc(node_room * sizeof(uint32_t)),
                              .to = malloc(edge_room * sizeof(uint32_t)),
                              .older = malloc(edge_room * sizeof(uint32_t)),
                              .rest = malloc(edge_room * sizeof(int64_t))};
    if (flow->enters == NULL || flow->leaves == NULL || flow->newest == NULL ||
        flow->level == NULL || flow->next == NULL || flow->queue == NULL || flow->to == NULL ||
        flow->older == NULL || flow->rest == NULL) {
        max_flow_finish(flow);
        return CAPU_NO_HOST_MEMORY;
    }
    memset(flow->newest, 0xff, node_room * sizeof(uint32_t));
    return CAPU_OK;
}

void max_flow_finish(struct max_flow *flow)
{
    free(flow->enters);
    free(flow->leaves);
    free(flow->newest);
    free(flow->level);
    free(flow->next);
    free(flow->queue);
    free(flow->to);
    free(flow->older);
    free(flow->rest);
    *flow = (struct max_flow){0};
}

static void add_half(struct max_flow *flow, uint32_t from, uint32_t to)
{
    flow->to[flow->edge_count] = to;
    flow->older[flow->edge_count] = flow->newest[from];
    flow->rest[flow->edge_count] = 0;
    flow->newest[from] = flow->edge_count++;
}

uint32_t max_flow_add_edge(struct max_flow *flow, uint32_t from, uint32_t to)
{
    add_half(flow, from, to);
    add_half(flow, to, from);
    return flow->edge_count - 2;
}

void max_flow_set_limit(struct max_flow *flow, uint32_t edge, int64_t limit)
{
    flow->rest[edge] = limit;
    flow->rest[edge ^ 1] = 0;
}

/* Returns whether flow that enters somewhere can leave somewhere. */
static bool find_levels(struct max_flow *flow)
{
    uint32_t count = 0;
    bool is_connected = false;

    for (uint32_t i = 0; i < flow->node_count; i++) {
        flow->next[i] = flow->newest[i];
        flow->level[i] = MAX_FLOW_NONE;
        if (flow->leaves[i] > 0) {
            flow->level[i] = 0;
            flow->queue[count++] = i;
        }
    }
    for (uint32_t at = 0; at < count; at++) {
        uint32_t node = flow->queue[at];

        is_connected |= flow->enters[node] > 0;
        for (uint32_t edge = flow->newest[node]; edge != MAX_FLOW_NONE; edge = flow->older[edge]) {
            uint32_t from = flow->to[edge];

            if (flow->rest[edge ^ 1] > 0 && flow->level[from] == MAX_FLOW_NONE) {
                flow->level[from] = flow->level[node] + 1;
                flow->queue[count++] = from;
            }
        }
    }
    return is_connected;
}

/* Fills a path from one node to another, where flow leaves. */
static int64_t fill_path(struct max_flow *flow, uint32_t from, uint32_t to, const uint32_t *path,
                         uint32_t length)
{
    int64_t amount = flow->enters[from] < flow->leaves[to] ? flow->enters[from] : flow->leaves[to];

    for (uint32_t i = 0; i < length; i++) {
        amount = amount < flow->rest[path[i]] ? amount : flow->rest[path[i]];
    }
    for (uint32_t i = 0; i < length; i++) {
        flow->rest[path[i]] -= amount;
        flow->rest[path[i] ^ 1] += amount;
    }
    flow->enters[from] -= amount;
    flow->leaves[to] -= amount;
    if (flow->leaves[to] == 0) {
        flow->level[to] = MAX_FLOW_NONE;
    }
    return amount;
}

/* Fills paths from a node along falling levels until there is none. The queue is free by now, and
   holds the edges of the current path. */
static int64_t fill_from(struct max_flow *flow, uint32_t start)
{
    uint32_t *path = flow->queue;
    uint32_t length = 0;
    uint32_t node = start;
    int64_t filled = 0;

    while (flow->enters[start] > 0 && flow->level[start] != MAX_FLOW_NONE) {
        uint32_t edge = flow->next[node];

        if (flow->level[node] == 0) {
            filled += fill_path(flow, start, node, path, length);
            length = 0;
            node = start;
        } else if (flow->level[node] == MAX_FLOW_NONE) {
            node = flow->to[path[--length] ^ 1];
        } else if (edge == MAX_FLOW_NONE) {
            flow->level[node] = MAX_FLOW_NONE;
        } else if (flow->rest[edge] > 0 && flow->level[flow->to[edge]] != MAX_FLOW_NONE &&
                   flow->level[flow->to[edge]] + 1 == flow->level[node]) {
            path[length++] = edge;
            node = flow->to[edge];
        } else {
            flow->next[node] = flow->older[edge];
        }
    }
    return filled;
}

int64_t max_flow_solve(struct max_flow *flow)
{
    int64_t total = 0;

    while (find_levels(flow)) {
        for (uint32_t i = 0; i < flow->node_count; i++) {
            total += fill_from(flow, i);
        }
    }
    return total;
}
