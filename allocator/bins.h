/*
 * Bins: the free extents by size, and the search for one that fits. A part of extents.c that no
 * other file uses.
 *
 * There are 32 bins per power of two, so the sizes in one bin differ by at most 3 %. A bin is a
 * linked list.
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

/* Puts a free extent into the bin of its size, and takes it out before it is taken or changes its
   size. */
void bins_insert(struct extents *extents, uint32_t index);
void bins_remove(struct extents *extents, uint32_t index);

/* A free extent of at least `bytes` that fits closely; NO_NODE only if there is none. */
uint32_t bins_find(const struct extents *extents, uint64_t bytes);

/* The largest free extent or one within 3 % of it; NO_NODE if nothing is free. */
uint32_t bins_find_largest(const struct extents *extents);

/* What is wrong with the bins if `free_count` extents are free; NULL if nothing is. */
const char *bins_check(const struct extents *extents, size_t free_count);

#endif
