/*
 * Looking ahead: what the ops to come will probably touch is brought into the processor's cache.
 *
 * What the library knows of 10^5 tensors does not fit a cache, and an op that waits for memory for
 * each of its operands takes several times as long. But nearly every iteration touches the same
 * tensors in the same order as the one before under its label, and that one's record says which
 * come next. These are hints only: an iteration that differs loses a little time, nothing else.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_AHEAD_H
#define CAPU_RUNTIME_AHEAD_H

#include "capuchin/context.h"
#include "runtime/iteration/record.h"

struct tensors;

/* Zeroed: looks at nothing. */
struct ahead {
    const struct record *before; /* the record to look at, not reused while this one is open */
    size_t recalled;             /* accesses of it whose tensors there were */
    size_t expected;             /* accesses of it whose addresses were hinted at */
    size_t spelled;              /* spelled operands, the same */
    size_t inside;               /* and those of which it is known whether a tensor begins there */
    size_t fetched;              /* accesses whose tensors were */
};

/* An op of the iteration that is recorded in `open` begins, with so many accesses. */
void ahead_look(struct ahead *ahead, const struct tensors *tensors, const struct record *open,
                size_t access_count);

#endif
