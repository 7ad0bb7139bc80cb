/*
 * Ranges: device addresses, in whole pages, with nothing mapped at them.
 *
 * Addresses come from large reservations, by best fit and with merging, so that programs whose
 * sizes change do not use up the address space. A range that is given back inside an iteration
 * rests until ranges_settle (the end of the iteration), because a replay might still write there.
 * Owned by the context's thread.
 */
#ifndef CAPU_ALLOCATOR_RANGES_H
#define CAPU_ALLOCATOR_RANGES_H

#include "device/device.h"

struct ranges;

/* NO_HOST_MEMORY. */
capu_status ranges_create(struct device *device, struct ranges **out);

/* Releases all reservations. Pre: nothing is mapped in them. NULL is fine. */
void ranges_destroy(struct ranges *ranges);

/* Takes a range of `page_count` pages. SYSTEM_LIMIT, NO_HOST_MEMORY. */
capu_status ranges_take(struct ranges *ranges, size_t page_count, void **address);

/* Takes exactly this range if all of it is free and no part of it rests; else NOT_READY. */
capu_status ranges_take_at(struct ranges *ranges, void *address, size_t page_count);

/* Gives back a range as it was taken. With `rests` it may be taken again after ranges_settle, else
   at once. Pre: nothing is mapped in it. Cannot fail: the take made room for it. */
void ranges_give(struct ranges *ranges, void *address, size_t page_count, bool rests);

/* Ranges given back before this call may be taken again. */
void ranges_settle(struct ranges *ranges);

/* Whether the address lies in any reservation, taken or not. Cheap, whatever the answer. */
bool ranges_contains(const struct ranges *ranges, const void *address);

bool ranges_validate(const struct ranges *ranges, const char **what);

#endif
