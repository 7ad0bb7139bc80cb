/*
 * Putting a guide in force, and taking it out of force.
 *
 * Installed means: every tensor of the guide has its range mapped once, onto pages that several
 * tensors share at times that do not overlap (DESIGN: the placed state). The guide's page numbers
 * are bound to pages so that what is resident stays where it is; what else must be resident is
 * copied in. Tensors that the guide knows nothing of keep their pages as far as there are any.
 *
 * In strict mode only what holds its pages is mapped, so that wrong accesses fault.
 *
 * A planned allocation that the user frees is parked: its range stays, for replays and for the next
 * iteration's allocation of it.
 *
 * Both calls wait for all work. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_INSTALL_H
#define CAPU_RUNTIME_INSTALL_H

#include "runtime/plan_entry.h"

/*
 * Between iterations, with no guide in force. On failure none is, and nothing is lost. NOT_READY: a
 * planned tensor is not there any more, or its addresses are taken; OVER_BUDGET, HOST_OVER_BUDGET,
 * NO_HOST_MEMORY, NO_ADDRESS_SPACE, DEVICE_FAILED.
 */
capu_status install_guide(capu_context *context, struct plan_entry *entry);

#endif
