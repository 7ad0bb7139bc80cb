/*
 * Staging: pinned host memory for what the device reads later, which is argument blocks and the
 * sources of uploads.
 *
 * A bump allocator with one set of chunks per iteration, used in turn, so a steady iteration
 * allocates nothing. There are three sets: when iteration n begins, iteration n-2 has finished, but
 * uploads made between n-2 and n-1 share the set of n-2 and may still be running; only the set of
 * n-3 is certainly free. A program that never ends its iteration, or that uploads gigabytes outside
 * one, fills a set up to STAGING_LIMIT; the caller then waits for the compute lane and restarts the
 * set.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_STAGING_H
#define CAPU_RUNTIME_STAGING_H

#include "device/device.h"

#define STAGING_CHUNK ((uint64_t)1 << 20)
#define STAGING_LIMIT ((uint64_t)64 << 20)

enum { STAGING_SETS = 3 };

struct staging_chunk {
    struct staging_chunk *next;
    unsigned char *memory;
    uint64_t bytes;
};

struct staging_set {
    struct staging_chunk *first;
    struct staging_chunk *current;
    uint64_t offset; /* into current */
    uint64_t taken;  /* bytes since the set was last restarted */
};

struct staging {
    struct device *device;
    struct staging_set sets[STAGING_SETS];
    size_t open; /* index of the set in use */
};

void staging_init(struct staging *staging, struct device *device);
void staging_finish(struct staging *staging);

/* Takes `bytes` of memory, aligned for any type, valid until the set is restarted. Does not
   check STAGING_LIMIT: ask staging_is_full first. NO_HOST_MEMORY, TOO_LARGE, or the device's
   failure. */
capu_status staging_take(struct staging *staging, uint64_t bytes, void **memory);

/* Whether `bytes` more would exceed STAGING_LIMIT in the open set. False for an empty set: one
   request may be larger than the limit. */
bool staging_is_full(const struct staging *staging, uint64_t bytes);

/* Makes all memory of the open set available again. Pre: all work that reads from it has finished.
 */
void staging_restart(struct staging *staging);

/* Opens the next set and restarts it: an iteration begins. Pre: the iteration before the last one
   has finished. */
void staging_turn(struct staging *staging);

#endif
