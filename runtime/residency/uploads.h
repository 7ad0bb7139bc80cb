/*
 * Uploads: the bytes that the program has uploaded, kept so that an upload can run again.
 *
 * capu_upload copies its source before it returns. In guided mode the copy of a whole tensor is
 * kept until the next iteration has ended, so an upload is as replayable as any op: plans may drop
 * inputs, and recovery brings them back. A plan may only rely on an upload that is kept. So whether
 * it is decides whether the call is replayable, and that is part of what is compared with the plan,
 * before anything is done.
 *
 * The copies are in blocks of the host arena: they count in host_bytes and obey the host budget.
 * They give way to evicted tensors: if the arena has no room for those, or none for an upload, no
 * upload is kept any more, until the context ends, unless what a plan has dropped depends on one.
 * Otherwise every other iteration might diverge from its plan.
 *
 * Each block has one half for even and one for odd iterations, since the host is never more than
 * two iterations ahead of the device. So a steady iteration allocates nothing, and an upload that
 * was kept once has room in the next iteration, too.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_UPLOADS_H
#define CAPU_RUNTIME_UPLOADS_H

#include "allocator/host_arena.h"

#include <stdbool.h>

struct residency;

struct upload_block {
    struct upload_block *next;
    struct host_block host; /* of one extent: two halves */
    uint64_t half_bytes;
    uint64_t used; /* the iteration that used it last */
};

struct uploads {
    struct upload_block *first;
    struct upload_block *current; /* NULL: none of this iteration's yet */
    uint64_t offset;              /* into its half */
    uint64_t bytes;               /* of all blocks */
    bool is_off;                  /* none is kept any more */
    bool is_held;                 /* recovery makes room to run one again */
};

/* Takes memory that is valid until the next iteration has ended; the caller copies the bytes. NULL:
   the upload is not kept. Making room for the upload may give that memory back: ask
   uploads_are_there before writing to it. */
void *uploads_take(struct residency *residency, uint64_t bytes);

/* A new iteration has begun. Pre: the iteration before the last one has finished. */
void uploads_turn(struct residency *residency);

/* Evicted tensors need the memory: gives it back, unless what a plan has dropped depends on it.
   False: there is nothing to give back. */
bool uploads_give_way(struct residency *residency);

/* Whether what this iteration has kept is still there. */
static inline bool uploads_are_there(const struct uploads *uploads)
{
    return uploads->first != NULL;
}

/* Frees the list, not the blocks: the arena goes next. Zeroed is fine. */
void uploads_finish(struct uploads *uploads);

#endif
