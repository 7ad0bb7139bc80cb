/*
 * The flow graph of a function: blocks, which branches decide whether a block runs, and loops. One
 * thread's view: barriers and other threads do not appear in it.
 */
#ifndef CAPU_INTERPOSE_PTX_GRAPH_H
#define CAPU_INTERPOSE_PTX_GRAPH_H

#include "interpose/ptx/ptx.h"

struct ptx_block {
    uint32_t first, end; /* instructions */
    uint32_t successor_first, successor_count;
    uint32_t control_first, control_count; /* ways out of branches that decide whether it runs */
    uint32_t meeting; /* the first block to which all ways out lead; block_count: the end */
    uint32_t
        loop; /* blocks of one loop, nested ones included, have the same; PTX_NONE: in no loop */
};

struct ptx_graph {
    struct ptx_block *blocks; /* in the order of the text; block 0 is the entry */
    size_t block_count, block_capacity;
    uint32_t *successors; /* blocks; block_count is the end of the thread */
    size_t successor_count, successor_capacity;
    uint32_t *controls; /* indices of `successors` */
    size_t control_count, control_capacity;
    uint32_t *sources;     /* of each of `successors`, the block that it is a way out of */
    uint32_t *block_of;    /* of each instruction */
    bool has_endless_loop; /* a loop that nothing leaves */
    bool has_lost_branch;  /* a branch whose target is not known */
    uint32_t lost_line;
};

/* Pre: the function has a body. On failure *graph is empty. Errors: NO_HOST_MEMORY; TOO_LARGE: more
   dependences than are worth keeping. */
capu_status ptx_graph_build(const struct ptx_function *function, struct ptx_graph *graph);
void ptx_graph_finish(struct ptx_graph *graph);

/*
 * Nested loops. The graph of a function numbers its outermost loops. Without a way back to the
 * block that it is entered by, a loop is none, or one less: what is left are the loops within it.
 * Of several ways back the last one in the text goes first, which is that of the outer loop where
 * two begin with the same block.
 */

/* What taking loops apart needs; `outermost` is how the graph was. */
struct ptx_loops {
    struct ptx_graph *graph;
    uint32_t *outermost;
    uint32_t *memory;
    bool *is_cut; /* of each way out */
};

/* Errors: NO_HOST_MEMORY. */
capu_status ptx_loops_begin(struct ptx_graph *graph, struct ptx_loops *loops);

/* Numbers the loops within the loops of the graph in place of these: `loop` of blocks that are in
   none is PTX_NONE from then on. False: there are none. */
bool ptx_loops_open(struct ptx_loops *loops);

/* Numbers the outermost loops again. */
void ptx_loops_end(struct ptx_loops *loops);

#endif
