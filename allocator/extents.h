/*
 * Extents: which pieces of an address space are taken, without touching what is at the addresses.
 *
 * The space consists of regions that are added over time. Each region is cut without gaps into
 * extents, taken or free, and two free neighbours are always merged; extents never cross from one
 * region to another, even if the regions touch. A take chooses the best fit: free extents stand in
 * bins by size, 32 to each power of two, and a few members of the first bin that may hold a fit are
 * compared. Every call costs the same with a hundred and with a hundred thousand extents.
 *
 * Sizes and addresses are multiples of the unit. Giving back never needs memory: a take makes the
 * records that its give will merge. Owned or locked by whoever owns the struct around it.
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
    bool takes_at; /* regions keep what extents_take_at needs: a bit a unit */

    struct extents_node *nodes; /* one an extent, and unused ones; all links are indices */
    size_t node_count;
    size_t node_capacity;
    uint32_t unused; /* first unused node */
    size_t unused_count;
    struct table by_start; /* from an extent's start to its node */

    struct bits bins_in_use;
    uint32_t bins[EXTENTS_BIN_COUNT]; /* first free node of each bin */

    struct extents_region **regions; /* by start; in a block each, so that nodes can point there */
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

/* Adds a free region. Pre: it overlaps no other, and its end does not overflow. INVALID: start or
   bytes is no multiple of the unit, or bytes is 0; NO_HOST_MEMORY. */
capu_status extents_add(struct extents *extents, uint64_t start, uint64_t bytes);

/* Takes `bytes` in one piece. INVALID; NOT_READY: no free extent is large enough; NO_HOST_MEMORY.
 */
capu_status extents_take(struct extents *extents, uint64_t bytes, uint64_t *start);

/* Takes up to `bytes`, in the largest piece there is (at least within 1/32 of its size). The same
   errors. */
capu_status extents_take_some(struct extents *extents, uint64_t bytes, struct extent *taken);

/* Takes exactly this piece. INVALID (also without takes_at); NOT_READY: not all of it is free;
   NO_HOST_MEMORY. */
capu_status extents_take_at(struct extents *extents, uint64_t start, uint64_t bytes);

/* Gives back the taken extent at `start`. Returns its size; 0, and nothing changed, if there is
   none. */
uint64_t extents_give(struct extents *extents, uint64_t start);

/* Size of the taken extent at `start`; 0 if there is none. */
uint64_t extents_taken_at(const struct extents *extents, uint64_t start);

/* Whether the address lies in a region. */
bool extents_contain(const struct extents *extents, uint64_t address);

/* The regions, by address. Pre: index < region_count. */
struct extent extents_region(const struct extents *extents, size_t index);

bool extents_validate(const struct extents *extents, const char **what);

#endif
