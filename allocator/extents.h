/*
 * Extents: which pieces of an address space are taken. The memory at the addresses is not touched.
 *
 * The space consists of regions that are added over time. Extents, taken or free, cover each region
 * without gaps, and two free neighbours are always merged. An extent never crosses from one region
 * into another, even if the regions touch. A take chooses the best fit, or nearly (see extents.c).
 * Every call costs about the same with a hundred and with a hundred thousand extents.
 *
 * Sizes and addresses are multiples of the unit. Giving back needs no memory and cannot fail: a
 * take reserves the records that its give will need. Owned, or protected by a lock, by the owner of
 * the struct around it.
 */
#ifndef CAPU_ALLOCATOR_EXTENTS_H
#define CAPU_ALLOCATOR_EXTENTS_H

#include "base/bits.h"
#include "base/table.h"
#include "capuchin/status.h"

#define EXTENTS_BIN_COUNT 1920 /* enough for any 64-bit size */

struct extent {
    uint64_t start;
    uint64_t bytes;
};

struct extents_node;
struct extents_region;

struct extents {
    uint64_t unit_bytes;
    bool takes_at; /* regions keep what extents_take_at needs: one bit per unit */

    struct extents_node *nodes; /* one per extent, and unused ones; all links are indices */
    size_t node_count;
    size_t node_capacity;
    uint32_t unused; /* first unused node */
    size_t unused_count;
    struct table by_start; /* from an extent's start to its node */

    struct bits bins_in_use;
    uint32_t bins[EXTENTS_BIN_COUNT]; /* first free node of each bin */

    struct extents_region *
        *regions; /* by start; allocated one by one, so that nodes can point to them */
    size_t region_count;
    size_t region_capacity;

    size_t taken_count;
    uint64_t taken_bytes;
    uint64_t free_bytes;
};

/* An empty space. NO_HOST_MEMORY. */
capu_status extents_init(struct extents *extents, uint64_t unit_bytes, bool takes_at);

/* Forgets everything. A zeroed struct is fine. */
void extents_finish(struct extents *extents);

/* Adds a free region. Pre: it overlaps no other. INVALID: `start` or `bytes` is not a multiple of
   the unit, `bytes` is 0, or the end overflows; NO_HOST_MEMORY. */
capu_status extents_add(struct extents *extents, uint64_t start, uint64_t bytes);

/* Takes `bytes` in one piece. INVALID; NOT_READY: no free extent is large enough; NO_HOST_MEMORY.
 */
capu_status extents_take(struct extents *extents, uint64_t bytes, uint64_t *start);

/* Takes up to `bytes` from the largest free extent (or one within 3 % of it). The same errors. */
capu_status extents_take_some(struct extents *extents, uint64_t bytes, struct extent *taken);

/* Takes exactly this piece. INVALID (also without takes_at); NOT_READY: not all of it is free;
   NO_HOST_MEMORY. */
capu_status extents_take_at(struct extents *extents, uint64_t start, uint64_t bytes);

/* Gives back the taken extent at `start` and returns its size. If there is none, nothing changes
   and the result is 0. */
uint64_t extents_give(struct extents *extents, uint64_t start);

/* Size of the taken extent at `start`; 0 if there is none. */
uint64_t extents_taken_at(const struct extents *extents, uint64_t start);

/* Whether the address lies in a region. */
bool extents_contain(const struct extents *extents, uint64_t address);

/* The regions, by address. Pre: index < region_count. */
struct extent extents_region(const struct extents *extents, size_t index);

bool extents_validate(const struct extents *extents, const char **what);

#endif
