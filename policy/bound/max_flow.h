/*
 * Maximum flow through a network by Dinic's algorithm, in integers. Flow enters and leaves at any
 * node, up to a limit per node. Built once, then solved for many sets of limits.
 *
 * Owned by one thread.
 */
#ifndef CAPU_POLICY_MAX_FLOW_H
#define CAPU_POLICY_MAX_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "capuchin/status.h"

#define MAX_FLOW_NONE UINT32_MAX
/* The most that may enter all nodes together, and a limit that no flow reaches. */
#define MAX_FLOW_UNLIMITED ((int64_t)1 << 61)

struct max_flow {
    uint32_t node_count;
    uint32_t edge_count; /* an edge and its reverse are 2i and 2i + 1 */
    int64_t *enters;     /* per node: what may still enter or leave */
    int64_t *leaves;
    uint32_t *newest; /* per node: its edge that was added last */
    uint32_t *level;  /* per node: edges to where flow can leave; MAX_FLOW_NONE: no path */
    uint32_t *next;   /* per node: the edge to try next */
    uint32_t *queue;
    uint32_t *to;    /* per edge */
    uint32_t *older; /* per edge: the edge of the same node that was added before it */
    int64_t *rest;   /* per edge: what may still flow */
};

/* For so many nodes, all without limits (0), and edges. Errors: NO_HOST_MEMORY; then zeroed. */
capu_status max_flow_init(struct max_flow *flow, uint32_t nodes, uint32_t edges);
void max_flow_finish(struct max_flow *flow);

/* The number of the new edge. Pre: there is room for it. */
uint32_t max_flow_add_edge(struct max_flow *flow, uint32_t from, uint32_t to);
/* Sets an edge's limit and takes all flow off it. */
void max_flow_set_limit(struct max_flow *flow, uint32_t edge, int64_t limit);

/* The largest flow; `enters`, `leaves` and `rest` become what is left of the limits. */
int64_t max_flow_solve(struct max_flow *flow);
/* After a solution: is the node on the near side of a minimum cut? No more flow can leave from
   there. */
static inline bool max_flow_is_near(const struct max_flow *flow, uint32_t node)
{
    return flow->level[node] == MAX_FLOW_NONE;
}

#endif
