/*
 * Splitting: one tensor becomes several, without a change of address or contents. The calls that
 * divide allocations are in split_ranges.c, the one that lengthens them in realloc.c.
 */
#ifndef CAPU_RUNTIME_SPLIT_H
#define CAPU_RUNTIME_SPLIT_H

#include "runtime/api/context.h"

/* What a tensor becomes. Parts that the caller names get no description; others inherit the
   tensor's. */
struct split_parts {
    const uint64_t *starts; /* where each part starts, and the end: offsets into the allocation */
    size_t count;           /* of the parts, at least one */
    size_t named;           /* the first part that is named, */
    size_t named_end;       /* and the one after the last */
};

/* Replaces a tensor by these parts. Pre: they are not empty, and cover the tensor; the last one may
   be longer than what is there if it ends with the allocation. Errors are those of capu_split,
   after which nothing has changed. */
capu_status split_tensor(capu_context *context, struct tensor *tensor, struct split_parts into);

#endif
