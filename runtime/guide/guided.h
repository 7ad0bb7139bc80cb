/*
 * The plan that iterations follow, and what an iteration that left it owes.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_GUIDED_H
#define CAPU_RUNTIME_GUIDED_H

#include "runtime/context/settings.h"
#include "runtime/guide/binding.h"
#include "runtime/guide/owed.h"
#include "runtime/guide/plan_entry.h"
#include "runtime/iteration/iteration_state.h"
#include "runtime/lanes/lanes.h"
#include "runtime/op/op.h"
#include "runtime/tensor/memory.h"

struct guided {
    /* What it works with. */
    struct failure *failure;
    struct lanes *lanes;
    struct memory *memory;
    const struct settings *settings;
    const struct iteration_state *iteration;

    struct plan_entry *active; /* whose guide is active; NULL: none */
    struct binding binding;    /* of its guide, or of the one that this iteration has left */
    struct owed owed;          /* in an iteration that has left its guide */
    uint64_t placement;        /* counts plans that became active */
};

#endif
