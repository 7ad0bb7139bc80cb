/*
 * Nodes of which it is known what they touch, although nothing is known of their kernels: those
 * that a call of cuBLAS has added to a capture. For the thread that has entered the core.
 */
#ifndef CAPU_SHIM_GRAPH_KNOWN_H
#define CAPU_SHIM_GRAPH_KNOWN_H

#include "shim/core/operands.h"
#include "shim/driver/driver.h"

#include "capuchin/capuchin.h"

#include <stdbool.h>

/* What one call touches. Shared by its nodes, and by the executable graphs with them. */
struct graph_known {
    unsigned holders;
    CUgraph graph; /* that captured it */
    size_t count;
    capu_operand operands[];
};

/* A call that adds nodes to a stream's capture, from begin to end. */
struct graph_known_call {
    struct graph_known *known;
    CUgraphNode *before; /* the nodes that were there before it */
    size_t before_count;
};

/* Around such a call, which touches the operands. The nodes that the call adds are noted if it
   succeeds. An error: there is no host memory, and the call must not be made. */
CUresult graph_known_begin(CUstream stream, const struct operands *operands,
                           struct graph_known_call *call);
void graph_known_end(const struct graph_known_call *call, bool has_succeeded);

/* Of a node of a graph; a holder more. NULL: nothing is known. */
struct graph_known *graph_known_take(CUgraph graph, CUgraphNode node);
void graph_known_release(struct graph_known *known);

/* A node that was changed; all nodes of a graph, before it is destroyed; all nodes. */
void graph_known_drop(CUgraphNode node);
void graph_known_drop_graph(CUgraph graph);
void graph_known_drop_all(void);

/* The nodes of a graph, which the caller frees. NULL with count 0: there are none. */
CUresult graph_list_nodes(CUgraph graph, CUgraphNode **list, size_t *count);

#endif
