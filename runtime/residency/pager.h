/*
 * The pager: which tensors are resident when no plan is active.
 *
 * An op needs its operands resident. The pager makes room for them by evicting other tensors, least
 * recently used first (residency.h), and brings back those that are out. Evicting only starts a
 * departure (departure.h): the host waits only when memory is needed at once, and then for the
 * departure that was queued first. The budget is not enforced here, but where pages are taken
 * (allocator/pages.h).
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_PAGER_H
#define CAPU_RUNTIME_PAGER_H

#include "capuchin/context.h"
#include "runtime/op/op.h"
#include "runtime/tensor/tensors.h"

struct residency;

/* Makes every access of the op resident, and makes compute wait for its copies (order.h).
   Errors as of pager_make_room; OVER_BUDGET also if the op alone is too large. */
capu_status pager_make_ready(struct residency *residency, const struct op *op);

/*
 * Makes `page_count` pages available by evicting tensors that are not spared (residency.h), as the
 * operands of the op at hand are. OVER_BUDGET: operands and always-resident pages leave too little.
 * HOST_OVER_BUDGET, NO_HOST_MEMORY: there is nowhere to evict to. Nothing is lost on failure.
 */
capu_status pager_make_room(struct residency *residency, size_t page_count);

/* Leaves the active guide if fewer pages than these are available: it keeps its own as long as it
   is active. pager_make_room begins with this. */
capu_status pager_leave_guide_for(struct residency *residency, size_t page_count);

/* Makes a tensor's span resident, with its contents if they are needed: the compute lane then waits
   for them. Pre: pager_make_room for its pages. */
capu_status pager_bring(struct residency *residency, struct tensor *tensor, bool needs_contents);

/* Starts a tensor's departure, after a copy out if its contents need one. Pre: PAGES_OWN. */
capu_status pager_evict(struct residency *residency, struct tensor *tensor);

/* Keeps an operand of the current op resident: cancels its departure if it is leaving, and makes it
   the most recently used. */
void pager_claim(struct residency *residency, struct tensor *tensor);

#endif
