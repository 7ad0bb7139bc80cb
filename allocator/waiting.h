/*
 * Waiting: extents that were given back while work still uses them. They stay taken until that work
 * has completed.
 *
 * There is one queue per lane, since positions of one lane complete in order, and those of two
 * lanes in any: only the first entry of each queue has to be checked. Entries are recycled, and
 * reserved before an extent is taken, so that giving back needs no memory.
 *
 * Owned, or protected by a lock, by the owner of the struct around it.
 */
#ifndef CAPU_ALLOCATOR_WAITING_H
#define CAPU_ALLOCATOR_WAITING_H

#include "allocator/extents.h"
#include "device/lane.h"

#define WAITING_QUEUES 8 /* a context has three lanes; any beyond these share the last queue */

struct waiting_entry;

struct waiting_queue {
    struct lane *lane;
    size_t first;
    size_t last;
};

struct waiting {
    struct waiting_entry *entries;
    size_t capacity; /* at least the number of taken extents */
    size_t count;    /* entries that wait */
    size_t unused;   /* first unused entry */
    uint64_t turn;   /* counts gives, to find the older of two entries */
    struct waiting_queue queues[WAITING_QUEUES];
    size_t queue_count;
};

/* Empty; takes no memory. */
void waiting_init(struct waiting *waiting);
void waiting_finish(struct waiting *waiting);

/* Makes sure that all taken extents and `count` more find an entry when they are given back. */
bool waiting_reserve(struct waiting *waiting, const struct extents *extents, size_t count);

/* Makes the taken extent at `start` wait for `after`. Pre: an entry is reserved. */
void waiting_add(struct waiting *waiting, uint64_t start, struct lane_position after);

/* Entries added from now on are younger than those added before. */
void waiting_turn(struct waiting *waiting);

/* Gives back to `extents` those whose position has completed. */
void waiting_collect(struct waiting *waiting, struct extents *extents);

/* The position that the oldest entry waits for; false if none waits. */
bool waiting_oldest(const struct waiting *waiting, struct lane_position *position);

/* True, and the bytes of all extents that wait; or false, and what is wrong. */
bool waiting_validate(const struct waiting *waiting, const struct extents *extents,
                      uint64_t *waiting_bytes, const char **what);

#endif
