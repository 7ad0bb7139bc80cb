/*
 * Slab sizes: the slots into which slabs of a page size are divided.
 *
 * There are 2, 3, 4, 5, 6, 8, 10, 12, 16, 20 ... slots per page, so that at most a quarter of a
 * slot is lost (a third in the largest). Pure.
 */
#ifndef CAPU_ALLOCATOR_SLAB_SIZES_H
#define CAPU_ALLOCATOR_SLAB_SIZES_H

#include <stddef.h>

enum { SLAB_SIZES_MAX = 48 };

#define SLAB_SLOT_ALIGNMENT ((size_t)256)

struct slab_size {
    size_t slot_bytes; /* a multiple of 256 */
    size_t slot_count; /* per page */
};

struct slab_sizes {
    struct slab_size list[SLAB_SIZES_MAX]; /* largest slots first */
    size_t count;
};

void slab_sizes_init(struct slab_sizes *sizes, size_t page_bytes);

/* The number of the smallest slots that hold `bytes`; SIZE_MAX above half a page. */
size_t slab_sizes_find(const struct slab_sizes *sizes, size_t bytes);

#endif
