/*
 * Bins: the free extents by size, and the best fit among them. The inside of extents.c, shared with
 * it alone.
 *
 * There are 32 bins to each power of two, so that a bin's sizes differ by 3 %; a bin is a list. A
 * few members of the first bin that may hold a fit are compared.
 */
#ifndef CAPU_ALLOCATOR_BINS_H
#define CAPU_ALLOCATOR_BINS_H

#include "allocator/extents.h"

#define NO_NODE UINT32_MAX

struct extents_node {
    uint64_t start;
    uint64_t bytes;
    struct extents_region *region;
    uint32_t before; /* neighbours by address */
    uint32_t after;
    uint32_t bin_before; /* in the bin's list if free; bin_after also links unused nodes */
    uint32_t bin_after;
    bool is_taken;
    bool is_used;
};

/* A free extent into the bin of its size, and out of it: before it is taken or its size changes. */
void bins_insert(struct extents *extents, uint32_t index);
void bins_remove(struct extents *extents, uint32_t index);

/* A free extent of at least `bytes`, a close fit; NO_NODE only if there is none. */
uint32_t bins_find(const struct extents *extents, uint64_t bytes);

/* About the largest one; NO_NODE: nothing is free. */
uint32_t bins_find_largest(const struct extents *extents);

/* What is wrong with the bins of `free_count` free extents; NULL: nothing. */
const char *bins_check(const struct extents *extents, size_t free_count);

#endif
