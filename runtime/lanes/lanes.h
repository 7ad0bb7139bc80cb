/*
 * The device, its lanes, and what is enqueued there: a part of the context.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_LANES_H
#define CAPU_RUNTIME_LANES_H

#include "capuchin/context.h"
#include "capuchin/graph.h"
#include "device/device.h"
#include "device/lane.h"
#include "policy/format/report.h"
#include "runtime/context/failure.h"
#include "runtime/lanes/staging.h"
#include "runtime/tensor/tensor.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A graph: what was captured of an iteration, and what it needs to be launched again.
 *
 * A launch skips everything that the runtime does for an iteration, so it must begin in the state
 * in which the capture began, and leave the state in which it ended. Both are noted for each tensor
 * that the iteration touched (api/graph.c).
 */

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
    struct report report; /* of a launch, but for its times; the lists are the graph's */
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

/*
 * The capture of an iteration: from the calls that would run it to a graph.
 *
 * The lanes are captured together: the copy lanes are forked from the compute lane at the beginning
 * and joined to it at the end, as CUDA demands, and the compute lane follows what they had before.
 * So everything older comes before the graph, and nothing in it need wait for older positions.
 * While a capture is open nothing can be waited for.
 *
 * A capture that cannot be continued is given up: what was recorded so far is launched once, and
 * the iteration goes on without. So a capture never changes what an iteration computes.
 *
 * Memory that the graph reads at each launch is the graph's own staging memory.
 *
 * Nothing here sets the last error, except where the context is lost.
 */

enum { CAPTURE_WHY_BYTES = 256 };

struct capture {
    capu_graph *graph;           /* NULL: the iteration is not one of a graph */
    uint64_t iteration;          /* its number */
    bool is_open;                /* work is recorded */
    char why[CAPTURE_WHY_BYTES]; /* it is not: why it was given up */
};

/* Begins to capture the iteration of this number. If that fails, it is given up. */
void capture_start(struct lanes *lanes, capu_graph *graph, uint64_t iteration);

/* Launches what is recorded, which becomes the graph's. Fails only if the context is lost. */
capu_status capture_finish(struct lanes *lanes);

/* Launches what is recorded, and goes on without capturing. Does nothing if no capture is open. */
void capture_give_up(struct lanes *lanes, const char *why);

/* Memory that lasts as long as what is captured. Pre: a capture is open. Errors as staging_take. */
capu_status capture_stage(struct lanes *lanes, uint64_t bytes, void **memory);

/* The same for the source of an upload of the program, which capu_graph_upload can replace. */
capu_status capture_upload(struct lanes *lanes, const void *to, uint64_t bytes,
                           unsigned char **memory);

/* A tensor was made known zeros, if a capture is open: launches do so, too. */
void capture_zeroed(struct lanes *lanes, struct tensor *tensor);

/* A copy from memory that capture_upload gave was recorded. */
capu_status capture_copied(struct lanes *lanes, const struct device_copy *copy);

/* All lanes, and what is enqueued there. */
struct lanes {
    struct failure *failure; /* where its errors go */
    struct device *device;
    struct lane compute;
    struct lane d2h;
    struct lane h2d;
    struct device_link link; /* guided mode: what plans are made for */
    struct staging staging;
    struct capture capture;  /* of the iteration under way */
    uint64_t unrecorded_ops; /* since the compute lane was last retired outside iterations */
};

/* Waits for a lane by whatever means still work: on the way out of a failure, when memory that the
   lane's work touches is about to be given up. The second waits for all lanes. */
void lanes_quiesce(struct lanes *lanes, struct lane *lane);
void lanes_quiesce_all(struct lanes *lanes);

#endif
