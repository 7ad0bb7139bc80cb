/*
 * Waiting: extents that were given back and stay taken until the work that uses them is past.
 *
 * They wait, one entry each, in a queue for each lane, since positions of one lane become past in
 * their order and those of two lanes in any. Entries are recycled, and reserved before an extent is
 * taken, so that giving back needs no memory.
 *
 * Owned or locked by whoever owns the struct around it.
 */
#ifndef CAPU_ALLOCATOR_WAITING_H
#define CAPU_ALLOCATOR_WAITING_H

#include "allocator/extents.h"
#include "device/lane.h"

#define WAITING_QUEUES 8 /* a context has three lanes; more than this share the last queue */

struct waiting_entry;

struct waiting_queue {
    struct lane *lane;
    size_t first;
    size_t last;
};

struct waiting {
    struct waiting_entry *entries;
    size_t capacity; /* at least as many as extents are taken */
    size_t count;    /* that wait */
    size_t unused;   /* first unused entry */
    uint64_t turn;   /* counts gives: which of two is older */
    struct waiting_queue queues[WAITING_QUEUES];
    size_t queue_count;
};

/* Empty; takes no memory. */
void waiting_init(struct waiting *waiting);
void waiting_finish(struct waiting *waiting);

/* Makes sure that all taken extents and `count` more find an entry when they come back. */
bool waiting_reserve(struct waiting *waiting, const struct extents *extents, size_t count);

/* The taken extent at `start` waits for `after`. Pre: reserved. */
void waiting_add(struct waiting *waiting, uint64_t start, struct lane_position after);

/* What is added from now on is younger than what was. */
void waiting_turn(struct waiting *waiting);

/* Gives back to `extents` all whose position is past. */
void waiting_collect(struct waiting *waiting, struct extents *extents);

/* The position that the oldest waits for; false: none waits. */
bool waiting_oldest(const struct waiting *waiting, struct lane_position *position);

/* False and *what on a breach, else the sum of what waits. */
bool waiting_validate(const struct waiting *waiting, const struct extents *extents,
                      uint64_t *waiting_bytes, const char **what);

#endif
