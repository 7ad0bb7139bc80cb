/*
 * Staging: host memory for what the device reads later: argument blocks and the sources of uploads.
 *
 * A bump allocator over pinned chunks with one set of chunks an iteration. What was handed out in
 * iteration n is taken back when the end of iteration n is known to be past, so a steady iteration
 * allocates nothing. A program that never ends its iteration (or uploads gigabytes outside one)
 * fills a set to STAGING_LIMIT; the caller then waits for the compute lane and starts the set
 * again.
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
    uint64_t taken;  /* bytes since the set was started */
};

struct staging {
    struct device *device;
    struct staging_set sets[STAGING_SETS];
    size_t open; /* index of the set in use */
};

void staging_init(struct staging *staging, struct device *device);
void staging_finish(struct staging *staging);

/* `bytes` of memory, aligned for any type. NO_HOST_MEMORY. Whether the set is full is
   staging_is_full's to tell; take works regardless. */
capu_status staging_take(struct staging *staging, uint64_t bytes, void **memory);

/* Whether `bytes` more would bring the open set over STAGING_LIMIT. */
bool staging_is_full(const struct staging *staging, uint64_t bytes);

/* Starts the open set again. Pre: all work that reads from it has finished. */
void staging_restart(struct staging *staging);

/* Turns to the next set and starts it again. Pre: all work of the iteration before the last one has
   finished. */
void staging_turn(struct staging *staging);

#endif
