/*
 * Graphs, shared by graph.c (nodes), graph_run.c (executable graphs) and capture.c.
 *
 * A node's work is a function and a block, as in the queue; which function it is, is the node's
 * type. Nodes are kept in the order in which they were added. Graphs are not used by two threads at
 * once.
 */
#ifndef CAPU_TESTS_PTX_GRAPH_H
#define CAPU_TESTS_PTX_GRAPH_H

#include "tests/ptx/driver/driver.h"

struct CUgraphNode_st {
    CUgraph graph;      /* that it is in; NULL: an executable one */
    CUgraphNode origin; /* in an executable graph: the node that it was made from */
    queue_function run;
    void *block; /* owned */
    size_t bytes;
    void **parameters;   /* of a kernel: addresses in the block, made when they are asked for */
    CUgraphNode *before; /* the nodes that it depends on; owned */
    size_t before_count;
    CUgraph child;  /* whose nodes it carries out, owned; NULL: none */
    bool is_marked; /* for walks */
};

struct CUgraph_st {
    CUgraphNode *nodes; /* owned, as they were added */
    size_t count, capacity;
};

struct CUgraphExec_st {
    struct CUgraph_st graph; /* its nodes in an order in which they can run */
};

/* The nodes that work of a stream depends on, while the stream captures; or those before an
   event. */
struct capture_place {
    struct capture *capture; /* NULL: none */
    CUgraphNode *last;       /* owned */
    size_t count;
};

/* Adds a node with a copy of the block. */
CUresult graph_add(CUgraph graph, queue_function run, const void *block, size_t bytes,
                   const CUgraphNode *before, size_t count, CUgraphNode *made);
/* Replaces what a node does; frees nothing on failure. */
CUresult graph_set(CUgraphNode node, const void *block, size_t bytes);
void graph_clear(struct CUgraph_st *graph);
/* Copies all nodes, in an order in which they can run. Errors: INVALID_VALUE: a cycle. */
CUresult graph_copy(struct CUgraph_st *copy, CUgraph graph, bool is_exec);
CUgraphNodeType graph_type(const struct CUgraphNode_st *node);

/* What nodes of each type do, and how their blocks are made and described: in the files of the
   calls that issue the same work. */
CUresult launch_run(void *block);
CUresult launch_make(const CUDA_KERNEL_NODE_PARAMS *params, void **block, size_t *bytes);
CUresult launch_describe(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params);
/* Launches in clusters are refused, so that the size of one is 0. */
CUresult launch_attribute(CUgraphNode node, unsigned id, CUlaunchAttributeValue *value);
CUresult fill_run(void *block);
CUresult fill_make(const CUDA_MEMSET_NODE_PARAMS *params, void **block, size_t *bytes);
void fill_describe(const void *block, CUDA_MEMSET_NODE_PARAMS *params);
CUresult copy_run(void *block);
CUresult copy_make(const CUDA_MEMCPY3D *params, void **block, size_t *bytes);
void copy_describe(const void *block, CUDA_MEMCPY3D *params);
CUresult host_run(void *block);
CUresult host_make(const CUDA_HOST_NODE_PARAMS *params, void **block, size_t *bytes);

/* Capturing. The caller holds no lock. */
struct capture_place *stream_place(CUstream handle);
/* Calls `visit` for the place of every stream and event. */
void stream_visit_places(void (*visit)(struct capture_place *place, bool is_event, void *data),
                         void *data);
CUresult capture_add(struct capture_place *place, queue_function run, const void *block,
                     size_t bytes);
/* The place depends on the nodes of another one, too, and takes part in its capture. */
CUresult capture_join(struct capture_place *place, const struct capture_place *other);
void capture_leave(struct capture_place *place);
/* Whether the legacy default stream may be used, or would have to wait for a capture. */
CUresult capture_check_legacy(void);

#endif
