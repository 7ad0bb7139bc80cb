/*
 * Host arena: the pinned host memory that holds evicted tensors.
 *
 * Sizes are exact: rounded to 64 bytes, never to powers of two. A take is a best fit, and free
 * neighbours in a chunk are merged. A block may consist of several extents, so that no free byte is
 * unusable. host_arena_grow adds chunks; it may be called from another thread, because pinning
 * blocks. The sum of the chunks never exceeds the budget.
 *
 * Guarded by a lock of its own, which is never held over host_alloc or a wait.
 */
#ifndef CAPU_ALLOCATOR_HOST_ARENA_H
#define CAPU_ALLOCATOR_HOST_ARENA_H

#include "device/device.h"
#include "device/lane.h"

struct host_arena;

struct host_extent {
    void *address;
    uint64_t bytes;
};

/* Host memory for one tensor: its bytes lie in the extents in order. Zeroed: no block. The sum of
   the extents' bytes is the unrounded size that was asked for. */
struct host_block {
    struct host_extent first; /* the common case needs no more */
    struct host_extent *more; /* extent_count - 1 of them; owned by the arena */
    size_t extent_count;
};

/* `budget_bytes` is a hard limit on the sum of the chunks; UINT64_MAX for none. NO_HOST_MEMORY. */
capu_status host_arena_create(struct device *device, uint64_t budget_bytes,
                              struct host_arena **out);

/* Frees all chunks. Pre: all copies have finished. NULL is fine. */
void host_arena_destroy(struct host_arena *arena);

/*
 * Takes a block of `bytes`. Does not grow the arena. A copy into the block needs to follow nothing:
 * a block is handed out only after the position that it was given back with has completed.
 * NOT_READY: no room now; grow, or wait for host_arena_oldest. NO_HOST_MEMORY.
 */
capu_status host_arena_take(struct host_arena *arena, uint64_t bytes, struct host_block *block);

/* The same, but in a single extent, so that a copy costs its latency once. */
capu_status host_arena_take_whole(struct host_arena *arena, uint64_t bytes,
                                  struct host_block *block);

/* Gives a block back; its memory may be reused once `after` has completed. Zeroes *block. */
void host_arena_give(struct host_arena *arena, struct host_block *block,
                     struct lane_position after);

/* Whether any block that was given back waits to be collected by the next take, and the position
   of the oldest, which may have completed by now: then a take collects it. */
bool host_arena_oldest(struct host_arena *arena, struct lane_position *position);

/*
 * Adds a chunk of at least `bytes`, or of the usual size if that is larger and the budget allows.
 * If less than `bytes` is left of the budget, it adds the rest, provided that the blocks in use and
 * `bytes` more fit the budget: scattered, they will find room. Any thread.
 * HOST_OVER_BUDGET: they do not fit, or nothing is left; NO_HOST_MEMORY.
 */
capu_status host_arena_grow(struct host_arena *arena, uint64_t bytes);

/* Whether so much of the arena is free, or about to be, that waiting for blocks that were given
   back is better than adding memory. Any thread. */
bool host_arena_is_wasteful(struct host_arena *arena);

/* Whether so little is free that another block of `bytes`, or a series of evictions, would have to
   wait for a chunk: time to add one. Any thread. */
bool host_arena_is_short(struct host_arena *arena, uint64_t bytes);

/* Bytes in chunks, and bytes in blocks (one that was given back and still waits counts as free).
   Any thread. */
uint64_t host_arena_chunk_bytes(struct host_arena *arena);
uint64_t host_arena_used_bytes(struct host_arena *arena);

bool host_arena_validate(struct host_arena *arena, const char **what);

#endif
