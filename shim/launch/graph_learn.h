/*
 * How the driver calls kernels in graphs: the function of a node need not be the handle that the
 * program has. Thread: any, not entered.
 */
#ifndef CAPU_SHIM_GRAPH_LEARN_H
#define CAPU_SHIM_GRAPH_LEARN_H

#include "shim/driver/driver.h"

/* From the node that the call before, of `function`, has added to the stream's capture. */
void graph_learn(CUstream stream, CUfunction function);

/* From a node of any graph. */
void graph_learn_node(CUgraphNode node, const void *function);

#endif
