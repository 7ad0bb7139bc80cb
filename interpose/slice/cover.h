/*
 * Memory that is covered, as a list of intervals: what a launch stores to for certain (slice.h),
 * in ascending order, which do not touch. The list is short: of more intervals, the longest are
 * kept, which is never too much.
 */
#ifndef CAPU_INTERPOSE_COVER_H
#define CAPU_INTERPOSE_COVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COVER_MOST = 64 };

struct cover_interval {
    uint64_t first;
    uint64_t end; /* after the last byte */
};

struct cover {
    struct cover_interval intervals[COVER_MOST];
    size_t count;
    uint64_t least_bytes; /* no interval of a full list is shorter */
};

/* Adds an interval that begins at or after the end of the last; it becomes one with the last if
   they touch. Nothing, if it is empty. */
void cover_add(struct cover *cover, uint64_t first, uint64_t end);

/* Adds the granules whose bits are set, the lowest of each word first. Granule 0 begins at `base`,
   at or after the end of the last interval. */
void cover_add_bits(struct cover *cover, const uint32_t *words, uint64_t count, uint64_t base,
                    uint32_t granule_bytes);

/* How far memory is covered from an address on: the end of the interval that it is in, or the
   address itself. */
uint64_t cover_end(const struct cover *cover, uint64_t address);

#endif
