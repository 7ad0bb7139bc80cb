/*
 * bf16 on the host: an operation computes in fp32, on copies of its operands that live as long as
 * its call; what it writes is rounded at the end. With fp32 nothing is copied: the operands
 * themselves are given back. So an operation is written once, and its fp32 results know nothing of
 * this.
 *
 * The copies are the host's ordinary memory, outside any budget: the host's operations are the
 * reference that cuda is compared with.
 *
 *     struct copies copies = {.element = gelu.element};
 *
 *     gelu.input = copies_read(&copies, gelu.input, gelu.count);
 *     gelu.output = copies_write(&copies, gelu.output, gelu.count);
 *     if (copies.status == CAPU_OK) {
 *         ...
 *     }
 *     return copies_finish(&copies);
 */
#ifndef CAPU_KERNELS_COPIES_H
#define CAPU_KERNELS_COPIES_H

#include "capuchin/op.h"

#include "kernels/element.h"

#define COPIES_LIMIT 8u

struct copy {
    float *floats; /* owned */
    uint16_t *to;  /* NULL: only read */
    size_t first;  /* what is before it is not copied either way */
    size_t end;
};

/* Owned by one call of an operation. */
struct copies {
    uint32_t element;
    capu_status status; /* NO_HOST_MEMORY: do not compute */
    size_t count;
    struct copy copy[COPIES_LIMIT];
};

/* `count` items as floats: to read; to write all of; to read and write. NULL gives NULL. */
const float *copies_read(struct copies *copies, const void *items, size_t count);
float *copies_write(struct copies *copies, void *items, size_t count);
float *copies_update(struct copies *copies, void *items, size_t count);

/* The same for the items [first, end) alone, which keep their indices; others are not touched. */
const float *copies_read_range(struct copies *copies, const void *items, size_t first, size_t end);
float *copies_write_range(struct copies *copies, void *items, size_t first, size_t end);

/* Rounds what was written, unless the status tells of a failure; frees, and gives the status. */
capu_status copies_finish(struct copies *copies);

#endif
