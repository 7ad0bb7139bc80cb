/*
 * Leaving the active guide: the rest of the iteration runs without a plan, and recovery begins.
 *
 * This happens when an op is not the planned one, when the iteration ends early, when a planned
 * step fails, and when anything else needs the pages that the guide has taken. It is apart from
 * install.h because the pager leaves guides, and installing one calls the pager.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_LEAVE_H
#define CAPU_RUNTIME_LEAVE_H

#include "capuchin/context.h"

struct residency;

/* Leaves the active guide, if there is one; inside an iteration recovery begins. Waits for all
   work. */
capu_status leave_guide(struct residency *residency);

/* Uninstalls the active guide: tensors that hold their pages keep them as their own, and so do
   those that gave them up if their contents are still there. No guide is active afterwards, even if
   the device fails. Pre: a guide is active. */
capu_status leave_uninstall(struct residency *residency);

#endif
