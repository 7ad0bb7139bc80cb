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
#include "runtime/context/failure.h"
#include "runtime/lanes/staging.h"

#include <stdbool.h>
#include <stdint.h>

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

struct lanes;
struct tensor;

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
