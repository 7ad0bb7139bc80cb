/*
 * Nested loops. The graph of a function numbers its outermost loops. Without a way back to the
 * block that it is entered by, a loop is none, or one less: what is left are the loops within it.
 * Of several ways back the last one in the text goes first, which is that of the outer loop where
 * two begin with the same block.
 */
#ifndef CAPU_INTERPOSE_LOOPS_H
#define CAPU_INTERPOSE_LOOPS_H

#include "interpose/ptx/ptx_graph.h"

/* What taking loops apart needs; `outermost` is how the graph was. */
struct loops {
    struct ptx_graph *graph;
    uint32_t *outermost;
    uint32_t *memory;
    bool *is_cut; /* of each way out */
};

/* Errors: NO_HOST_MEMORY. */
capu_status loops_begin(struct ptx_graph *graph, struct loops *loops);

/* Numbers the loops within the loops of the graph in place of these: `loop` of blocks that are in
   none is PTX_NONE from then on. False: there are none. */
bool loops_open(struct loops *loops);

/* Numbers the outermost loops again. */
void loops_end(struct loops *loops);

#endif
