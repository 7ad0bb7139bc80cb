/*
 * bf16 on the host. An operation computes in fp32, on copies of its bf16 operands that live as long
 * as the call, and its results are rounded at the end. fp32 operands are not copied: the functions
 * return the operands themselves. So each operation is written once, for fp32.
 *
 * The copies are ordinary host memory, outside any budget. That is acceptable because on the host
 * operations serve as the reference for cuda: clarity counts, not speed.
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
    size_t first;  /* items before it are not copied in either direction */
    size_t end;
};

/* Owned by one call of an operation. */
struct copies {
    uint32_t element;
    capu_status status; /* NO_HOST_MEMORY: do not compute */
    size_t count;
    struct copy copy[COPIES_LIMIT];
};

/* `count` items as floats: to be read; all to be written; to be read and written. NULL for NULL. */
const float *copies_read(struct copies *copies, const void *items, size_t count);
float *copies_write(struct copies *copies, void *items, size_t count);
float *copies_update(struct copies *copies, void *items, size_t count);

/* The same for the items [first, end) only. They keep their indices; others are not accessed. */
const float *copies_read_range(struct copies *copies, const void *items, size_t first, size_t end);
float *copies_write_range(struct copies *copies, void *items, size_t first, size_t end);

/* Rounds and stores what was written unless the status is an error, frees the copies, and returns
 * the status. */
capu_status copies_finish(struct copies *copies);

#endif
