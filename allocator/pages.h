/*
 * Pages: the pool of physical device memory, and the place where the budget is a hard limit.
 *
 * Pages are created on demand up to the budget and recycled; they are destroyed with the pool, or
 * when the budget is lowered.
 * A page is either free in the pool or out, that is, taken by a caller. Pages that are out may be
 * put aside: they are in the pool again, so that they can be taken as neighbours, but only by who
 * put so many aside. Invariants: free + out = created; created x page_bytes <= budget. Owned by the
 * context's thread.
 */
#ifndef CAPU_ALLOCATOR_PAGES_H
#define CAPU_ALLOCATOR_PAGES_H

#include "device/device.h"

struct pages;

/* OVER_BUDGET: the budget is below one page. NO_HOST_MEMORY. */
capu_status pages_create(struct device *device, uint64_t budget_bytes, struct pages **out);

/*
 * Changes the budget. Free pages are destroyed until no more exist than it allows; those with the
 * highest numbers first. A limit that the device had set is forgotten. On failure nothing changes.
 * OVER_BUDGET: the budget is below one page, or more pages are out.
 */
capu_status pages_set_budget(struct pages *pages, uint64_t budget_bytes);

/* Pre: every page has been given back, or the device is destroyed next. NULL is fine. */
void pages_destroy(struct pages *pages);

/*
 * Takes `count` pages, neighbours where possible (fewer mappings on host). All or nothing.
 * OVER_BUDGET: fewer than `count` are free or may be created, or the device has less memory than
 * the budget allows, in which case the limit falls to what it has. The caller may make room and try
 * again. NO_HOST_MEMORY; DEVICE_FAILED.
 */
capu_status pages_take(struct pages *pages, size_t count, device_page *out);

/* Gives pages back. Pre: they are mapped nowhere, and all work that touched them has finished. */
void pages_give(struct pages *pages, const device_page *list, size_t count);

/* Puts pages that are out aside; takes so many of those that are aside, neighbours where possible;
   gives so many of them back for good. Pre: the first as of pages_give; the others: so many are
   aside. */
void pages_put_aside(struct pages *pages, const device_page *list, size_t count);
void pages_take_aside(struct pages *pages, size_t count, device_page *out);
void pages_give_aside(struct pages *pages, size_t count);

/* How many pages could be taken now. */
size_t pages_available(const struct pages *pages);

/* Pages that the budget and the device allow; pages that are out, with those aside, now and at the
   peak since pages_reset_peak. */
size_t pages_limit(const struct pages *pages);
size_t pages_out(const struct pages *pages);
size_t pages_out_peak(const struct pages *pages);
void pages_reset_peak(struct pages *pages);

/* Pages that exist, in the pool or out; now, and the most there were. */
size_t pages_created(const struct pages *pages);
size_t pages_created_peak(const struct pages *pages);

uint64_t pages_bytes_each(const struct pages *pages);

/* Checks the invariants; false and *what on a breach. For tests. */
bool pages_validate(const struct pages *pages, const char **what);

#endif
