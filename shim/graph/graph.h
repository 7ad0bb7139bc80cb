/*
 * Graphs: what their nodes do to the program's memory. The nodes of an executable graph are read
 * when it is made and whenever it is changed. A launch is one access of all that its nodes may
 * touch: read where all nodes only read, else updated, since their order does not matter then.
 *
 * A graph is open, so that all memory is made resident for a launch, if it has a node of which that
 * is not known: an open kernel, another graph, a condition, an allocation.
 */
#ifndef CAPU_SHIM_GRAPH_H
#define CAPU_SHIM_GRAPH_H

#include "shim/core/operands.h"
#include "shim/driver/driver.h"
#include "shim/launch/launch.h"

#include "capuchin/capuchin.h"

#include <stdbool.h>

/* What one call touches that is known, although nothing is known of its kernels: a call of cuBLAS.
   Shared by its nodes, and by the executable graphs with them. */
struct graph_known {
    unsigned holders;
    CUgraph graph; /* that captured it */
    size_t count;
    capu_operand operands[];
};

/* What is known about a node. */
struct graph_node {
    CUgraphNode handle; /* of the node that it was read from */
    unsigned type;
    struct code_kernel *kernel; /* of a kernel */
    struct launch launch;       /* of a closed kernel, but for the parameters */
    unsigned char *bytes;       /* those; owned */
    struct memset_node fill;    /* of a memset */
    struct copy_3d copy;        /* of a copy */
    struct graph_known *known;  /* instead: of a call of cuBLAS; a holder of it */
};

struct graph {
    unsigned number; /* from 1, in messages and the report */
    char name[48];
    struct graph_node *nodes;
    size_t count, capacity;
    const char *reason; /* why it is open, but for its kernels; NULL: it is not */
    uint64_t launch_count;
    uint64_t failed_count;
    uint64_t most_bytes; /* of the operands of one launch */
    struct graph *next;
};

/* The rest is for the thread that has entered the core. */

/* Reads all nodes of a graph, which replace those that are known. What cannot be read makes it
   open. Errors: OUT_OF_MEMORY; NOT_SUPPORTED: a node that cannot be used, which a line names. */
CUresult graph_read(struct graph *graph, CUgraph from);

/* What is now known about the node of a handle, to be filled in: that which is there, or a new one.
   NULL: no host memory. */
struct graph_node *graph_change(struct graph *graph, CUgraphNode handle);
void graph_note_kernel(struct graph_node *node, const struct kernel_node *params);
void graph_note_fill(struct graph_node *node, const struct memset_node *params);
void graph_note_copy(struct graph_node *node, const struct copy_3d *params);
void graph_forget(struct graph *graph);

/* Adds what the nodes touch. *open: why it is all memory, or NULL. */
CUresult graph_add(const struct graph *graph, struct operands *operands, const char **open);

/* Whether a graph that is not open may store to variables of modules. */
bool graph_may_store_variables(const struct graph *graph);

/* Adds what a memset or copy touches; the role is that of what it writes. */
void graph_add_fill(const struct memset_node *fill, struct operands *operands, capu_role role);
void graph_add_copy(const struct copy_3d *copy, struct operands *operands, capu_role role);

/*
 * Around a call of the driver that makes or changes a node for a copy or memset: the driver may
 * look at its addresses, so what is there has to be resident. graph_hold begins an access of the
 * operands, if there are any, and frees them; on an error it leaves the core. graph_release ends
 * it, leaves the core and returns the driver's answer.
 */
CUresult graph_hold(struct operands *operands);
CUresult graph_release(const struct operands *operands, CUresult result);

/* Enqueues the driver's own memset on a stream of the driver. Thread: any. */
CUresult graph_enqueue_fill(const struct memset_node *fill, CUstream stream);

/* Copies and memsets of a stream that captures. Thread: any, not entered. */
CUresult graph_capture_copy(uint64_t to, uint64_t from, size_t bytes, CUstream stream);
CUresult graph_capture_2d(const struct copy_2d *copy, CUstream stream);
CUresult graph_capture_3d(const struct copy_3d *copy, CUstream stream);
CUresult graph_capture_fill(const struct memset_node *fill, CUstream stream);

/* All graphs that were launched or can be, by `next`, the last first. */
const struct graph *graph_list(void);

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

/* A node that was changed; all nodes of a graph, before it is destroyed; all nodes. */
void graph_known_drop(CUgraphNode node);
void graph_known_drop_graph(CUgraph graph);
void graph_known_drop_all(void);

/* The nodes of a graph, which the caller frees. NULL with count 0: there are none. */
CUresult graph_list_nodes(CUgraph graph, CUgraphNode **list, size_t *count);

#endif
