/*
 * Poison: a pattern that says which memory an op was given without contents.
 *
 * Strict mode fills it into what an op is to write, and looks for it after the op. Words that are
 * unchanged were not written. Words that have come out of arithmetic with the pattern show that the
 * op read the memory first.
 *
 * The pattern is 8 bytes that follow from a number, a new one for each op and tensor. As a double,
 * and each half as a float, they are NaN. The NaN of the first half, and that of the double, are
 * signalling ones; arithmetic makes them quiet and keeps the payload (IEEE 754, 6.2.3; x86 and ARM
 * do). So memory that was only copied differs from results. The upper half of each float is a NaN
 * as a bfloat16; its payload is too short to be found again.
 *
 * The payload is the number, so patterns of other ops that still lie in memory without contents are
 * not mistaken for this one; numbers repeat after four million, and after 458752 in the second
 * half. Hardware and C libraries do not make such NaN on their own, so an op may write NaN as it
 * likes. Random bits look like the pattern by chance, in one word of 2^32 (2^29 for results), and
 * the limits below are chosen so that such an accident is not reported.
 *
 * Pure functions of memory. Words of 4 bytes count where their address is a multiple of 4.
 */
#ifndef CAPU_RUNTIME_POISON_H
#define CAPU_RUNTIME_POISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct poison {
    uint32_t words[2]; /* at addresses that are multiples of 8, and at those 4 above */
};

struct poison poison_of(uint64_t number);

/* A pattern that differs from it in every byte, and is not NaN: as a float of any size it is a
   large number. */
struct poison poison_other(const struct poison *poison);

/* The byte of the pattern for an address. */
static inline unsigned char poison_byte(const struct poison *poison, const void *address)
{
    return ((const unsigned char *)poison->words)[(uintptr_t)address % sizeof(poison->words)];
}

/* Whether a word may come from the pattern of one of the `count` numbers up to `number`: then
 *index is how far below `number` it is. */
bool poison_is_from(uint32_t word, uint64_t number, uint64_t count, uint64_t *index);

/* Fills memory that stands for `bytes` at `address`. (Another mapping of the same page has other
   addresses; the pattern follows `address`.) */
void poison_fill(const struct poison *poison, void *memory, const void *address, uint64_t bytes);

/* What was found of one pattern in a range, stretch by stretch. Starts as zero. */
struct poison_found {
    uint64_t words;   /* how many */
    const void *at;   /* the first */
    bool is_at_edge;  /* one is the first or the last word of the range */
    uint64_t scanned; /* words that were looked at */
};

/* A stretch of the range that was poisoned: `memory` stands for [address, address + bytes). */
struct poison_range {
    const void *first;
    uint64_t bytes; /* of the range */
};

/* Adds the words that are unchanged. */
void poison_find_unchanged(const struct poison *poison, const struct poison_range *range,
                           const void *memory, const void *address, uint64_t bytes,
                           struct poison_found *found);

/* Adds the words that come from the pattern and were put or left there by work. Unchanged words are
   not counted if the stretch is `own`, that is, was poisoned with this pattern. */
void poison_find_results(const struct poison *poison, bool own, const void *memory,
                         const void *address, uint64_t bytes, struct poison_found *found);

/* Whether they are too many for an accident. Unchanged: the range's first or last word, or two
   words anywhere. Results: one word among up to 16, two among up to 65536, four among more. */
bool poison_is_unchanged(const struct poison_found *found);
bool poison_is_result(const struct poison_found *found);

#endif
