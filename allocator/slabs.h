/*
 * Slabs: small tensors, many to a page, always resident.
 *
 * A page is too large a unit for small tensors: most of its memory would be unused. A slab is one
 * page, divided into slots of one size that are aligned to 256 bytes. A slot that is given back
 * rests until slabs_settle (the end of the iteration), like a range. Only the compute stream
 * touches small tensors, in the order of issue, so a slot can be reused without waiting for a
 * position. Owned by the context's thread.
 */
#ifndef CAPU_ALLOCATOR_SLABS_H
#define CAPU_ALLOCATOR_SLABS_H

#include "allocator/pages.h"
#include "allocator/ranges.h"

struct slabs;

/* The largest size a slab serves is half a page. NO_HOST_MEMORY. */
capu_status slabs_create(struct device *device, struct pages *pages, struct ranges *ranges,
                         struct slabs **out);

/* From now on the slots of a new slab do not share addresses: its page is mapped once for each
   slot, and each slot is used at its own of these addresses. So the access to one small tensor can
   be restricted without restricting another's, at no cost of device memory. Where there are not
   enough addresses or mappings, or a page has too many slots, the slots share addresses
   nevertheless. */
void slabs_spread(struct slabs *slabs);

/* Unmaps and gives back every slab. Pre: all work has finished. NULL is fine. */
void slabs_destroy(struct slabs *slabs);

/* Whether the next slabs_take of this size needs a free page from the pool. */
bool slabs_needs_page(const struct slabs *slabs, size_t bytes);

/* Takes a slot. OVER_BUDGET (no page is free in the pool: the caller makes room first),
   SYSTEM_LIMIT, NO_HOST_MEMORY, DEVICE_FAILED. */
capu_status slabs_take(struct slabs *slabs, size_t bytes, void **address);

/* Takes exactly this slot if it is free, does not rest, and belongs to the class that serves this
   size; else NOT_READY. */
capu_status slabs_take_at(struct slabs *slabs, void *address, size_t bytes);

/* Gives a slot back; false if no taken slot starts at the address. */
bool slabs_give(struct slabs *slabs, void *address);

/* Slots given back before this call may be taken again. */
void slabs_settle(struct slabs *slabs);

/* Gives back the pages of slabs in which every slot is free and none rests: of all, or only of
   those that were not in use since the second to last call of slabs_turn. Pre: the compute stream
   has passed the last use of their slots. Returns how many pages. */
size_t slabs_trim(struct slabs *slabs, bool is_all);

/* Start of the taken slot that holds the address (interior addresses too), NULL if none does. */
void *slabs_find(const struct slabs *slabs, const void *address);

/* The size of the taken slot that starts at the address; 0: none does. */
size_t slabs_slot_bytes(const struct slabs *slabs, const void *address);

/* Start of the taken slot before or after the one that starts at the address, in the same page.
   NULL: there is none. */
void *slabs_beside(const struct slabs *slabs, const void *address, bool is_after);

/* Pages held by slabs. */
size_t slabs_page_count(const struct slabs *slabs);

/* Those of them in which a slot is taken or rests. The others are empty: slabs_trim can give them
   back. */
size_t slabs_used_count(const struct slabs *slabs);

/* The bytes of taken and resting slots. */
size_t slabs_used_bytes(const struct slabs *slabs);

/* How many slabs were in use since the second to last call of slabs_turn, at once or one after the
   other, the most of the two turns: what the program is expected to need again soon. slabs_restart
   forgets those that are not in use. */
size_t slabs_kept_count(const struct slabs *slabs);
void slabs_turn(struct slabs *slabs);
void slabs_restart(struct slabs *slabs);

bool slabs_validate(const struct slabs *slabs, const char **what);

#endif
