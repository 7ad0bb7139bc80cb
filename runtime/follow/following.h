/*
 * What following a plan works with: it has no fields of its own, since the plan that is followed is
 * in guided.h.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_FOLLOWING_H
#define CAPU_RUNTIME_FOLLOWING_H

#include "runtime/lanes/graph.h"
#include "runtime/residency/residency.h"

struct following {
    const struct settings *settings;
    struct failure *failure;
    struct lanes *lanes;
    struct memory *memory;
    const struct iteration_state *iteration;
    struct guided *guided;
    struct records *records;
    struct strict *strict;
    struct residency *residency;
    struct graphs *graphs;
};

#endif
