/*
 * A graph: what was captured of an iteration, and what it needs to be launched again.
 *
 * A launch skips everything that the runtime does for an iteration, so it must begin in the state
 * in which the capture began, and leave the state in which it ended. Both are noted for each tensor
 * that the iteration touched (api/graph.c).
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_GRAPH_H
#define CAPU_RUNTIME_GRAPH_H

#include "capuchin/graph.h"
#include "capuchin/report.h"
#include "runtime/lanes/staging.h"
#include "runtime/tensor/tensor.h"

/* A tensor that the iteration touched. */
struct graph_tensor {
    struct tensor *tensor; /* valid while graphs.layout is the graph's */
    struct tensor_state before;
    struct tensor_state after;
    bool is_persistent;
    bool is_live_in; /* what it had before the iteration was read */
    bool is_written;
};

/* An upload of the captured iteration. Its source has a place of its own for each of as many
   launches as can be under way, and the one to be prepared. */
struct graph_upload {
    const void *to;
    uint64_t bytes;
    unsigned char *places[STAGING_SETS];
    size_t place;      /* the one in use */
    uint64_t launches; /* of the graph, when it was filled */
};

/* A node that copies from an upload's source: of the upload, or of a replay of it. */
struct graph_copy {
    void *node;       /* its name in the device's graph */
    void *fresh_node; /* in what is being captured */
    size_t upload;
    uint64_t offset; /* into the source */
    void *to;
    uint64_t bytes;
};

struct capu_graph {
    capu_context *context;
    capu_graph *next; /* in graphs.first */
    capu_graph *previous;
    struct device_graph *device_graph; /* NULL: none yet */
    bool is_ready;                     /* it can be launched */
    uint64_t placement;                /* of the plan when it was captured: guided.placement */
    uint64_t layout;                   /* of graphs, when it was captured */
    uint64_t launches;
    struct staging staging;

    struct graph_upload *uploads;
    size_t upload_count;
    size_t upload_capacity;
    struct graph_copy *copies;
    size_t copy_count;
    size_t copy_capacity;

    struct tensor **zeroed; /* known zeros took the place of their contents, which is no op */
    size_t zeroed_count;
    size_t zeroed_capacity;

    struct tensor_state *before; /* per tensor of the guide, while it is captured */
    size_t before_capacity;
    struct graph_tensor *tensors;
    size_t tensor_count;
    size_t tensor_capacity;

    const char *label; /* interned */
    uint64_t signature;
    capu_report report; /* of a launch, but for its times; the lists are the graph's */
    capu_eviction *evictions;
    size_t eviction_capacity;
};

/* All graphs of a context, and what makes them stale. */
struct graphs {
    capu_graph *first;
    uint64_t layout;         /* counts tensors that were freed, split or described anew */
    const char *layout_name; /* of the last one; interned, or a constant */
};

struct lanes;

/* Takes a graph off the list and frees it. Pre: no launch of it is under way. */
void graph_free(struct lanes *lanes, struct graphs *graphs, capu_graph *graph);

#endif
