/*
 * What leaves the device, and what is kept to come back: a part of the context. And victims: the
 * tensors that may be evicted, in the order in which they are.
 * And leaving the active guide, which gives the tensors their pages back.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_RESIDENCY_H
#define CAPU_RUNTIME_RESIDENCY_H

#include "capuchin/context.h"
#include "runtime/context/agent.h"
#include "runtime/residency/departure.h"
#include "runtime/residency/uploads.h"
#include "runtime/strict/strict.h"
#include "runtime/tensor/tensors.h"

/*
 * Victims are the tensors with pages of their own (PAGES_OWN), unless the mode is off, in which
 * nothing is evicted. Each is in one of three lists, least recently used first. Victims are taken
 * from `empty` before `clean` before `dirty`: evicting an empty tensor costs nothing, a clean one
 * at most a copy back later, and a dirty one also a copy out now.
 */

struct victims {
    struct tensor_list empty; /* nothing in them that a copy could keep */
    struct tensor_list clean; /* with a valid host copy */
    struct tensor_list dirty;
    uint64_t spared; /* of tensor.in_op.stamp: these are not taken */
};

struct residency {
    /* What it works with. */
    struct failure *failure;
    struct agent *agent; /* which pins host memory */
    struct lanes *lanes;
    struct memory *memory;
    const struct settings *settings;
    const struct iteration_state *iteration;
    struct guided *guided;
    struct records *records;
    struct strict *strict;

    struct victims victims;
    struct departures departures;
    struct uploads uploads;
    struct allocation *parked; /* freed allocations that the guide keeps */
};

/* Spares the tensors whose in_op gets this stamp, until the next call: the operands of an op, or
   those of nothing. */
static inline uint64_t victims_spare(struct victims *victims)
{
    return ++victims->spared;
}

/* Puts a mapped tensor into the list it belongs to now, as the most recently used. */
void victims_touch(struct residency *residency, struct tensor *tensor);

/* The tensor to evict next, none that is spared; NULL: there is none. Least recently used first;
   what costs no copy before what does. */
struct tensor *victims_choose(const struct residency *residency);

/*
 * Leaving the active guide (leave.c): the rest of the iteration runs without a plan, and recovery
 * begins.
 *
 * This happens when an op is not the planned one, when the iteration ends early, when a planned
 * step fails, and when anything else needs the pages that the guide has taken. It is apart from
 * installing one because the pager leaves guides, and installing one calls the pager.
 */

/* Leaves the active guide, if there is one; inside an iteration recovery begins. Waits for all
   work. */
capu_status leave_guide(struct residency *residency);

/* Uninstalls the active guide: tensors that hold their pages keep them as their own, and so do
   those that gave them up if their contents are still there. No guide is active afterwards, even if
   the device fails. Pre: a guide is active. */
capu_status leave_uninstall(struct residency *residency);

#endif
