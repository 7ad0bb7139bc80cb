/*
 * What following a plan works with: a part of the context. It has no fields of its own, since the
 * plan that is followed is in guided.h. And how that begins: installing a guide.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_FOLLOWING_H
#define CAPU_RUNTIME_FOLLOWING_H

#include "runtime/guide/plan_entry.h"
#include "runtime/lanes/lanes.h"
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

/*
 * Installing a guide (install.c): making it the active one.
 *
 * Without a guide each tensor has pages of its own while it is resident, and moving one means
 * mapping and unmapping, which costs tens of microseconds on a GPU and waits for the device. A
 * guide avoids that: the planner has given every tensor fixed page numbers, and tensors whose
 * lifetimes do not overlap share them. Installing binds the numbers to pages of the device and maps
 * the range of every planned tensor once, so that until the guide is left only contents move.
 *
 * To remap as little as possible, the page numbers of a tensor that is resident, and that the plan
 * starts with, are bound to the pages it has. Only the remaining numbers need other pages, and only
 * what the plan starts with and is not resident is copied in. Tensors that the guide does not know
 * keep their pages as far as there are enough.
 *
 * In strict mode only a tensor that holds its pages is mapped, so that wrong accesses fault.
 *
 * Waits for all work.
 */

/*
 * Pre: no iteration is open, and no guide is active. On failure no guide is active, and no contents
 * are lost. NOT_READY: a planned tensor no longer exists, or its addresses are in use; OVER_BUDGET,
 * HOST_OVER_BUDGET, NO_HOST_MEMORY, SYSTEM_LIMIT, DEVICE_FAILED.
 */
capu_status install_guide(struct following *following, struct plan_entry *entry);

#endif
