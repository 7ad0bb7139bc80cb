/*
 * The pager: which tensors are resident when no plan is active.
 *
 * An op needs its operands resident. The pager makes room for them by evicting other tensors, least
 * recently used first (victims.h), and brings back those that are out. Evicting only starts a
 * departure (departure.h): the host waits only when memory is needed at once, and then for the
 * departure that was queued first.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_PAGER_H
#define CAPU_RUNTIME_PAGER_H

#include "runtime/tensors.h"

struct pager {
    bool has_waited; /* since the op at hand began: the host for room, or compute for a copy in */
};

/*
 * Sees to it that `page_count` pages can be taken, evicting what is no operand of the op at hand
 * (tensor.in_op.stamp). OVER_BUDGET: too much is in use by operands and always-resident pages;
 * HOST_OVER_BUDGET, NO_HOST_MEMORY: nowhere to evict to. Nothing is lost on failure.
 */
capu_status pager_make_room(capu_context *context, size_t page_count);

/* Gives back always-resident pages that no small tensor lives in any more; waits for the compute
   lane. */
capu_status pager_trim(capu_context *context);

/* Makes a tensor's span resident, with its contents if asked for; the compute lane is made to wait
   for them. Pre: pager_make_room for its pages. */
capu_status pager_bring(capu_context *context, struct tensor *tensor, bool needs_contents);

/* Starts a tensor's departure. Pre: mapped, not leaving. */
capu_status pager_evict(capu_context *context, struct tensor *tensor);

/* Keeps an operand of the op at hand: takes it back as it was if it is leaving, and makes it the
   most recently used. */
void pager_claim(capu_context *context, struct tensor *tensor);

#endif
