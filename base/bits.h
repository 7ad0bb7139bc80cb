/*
 * Bits: a set of small integers that can be asked for its next and previous member.
 *
 * The members are bits in words. Above them are levels of summaries, one bit per word of the level
 * below, up to a single word, so that every question is answered by looking at a few words,
 * whatever the set contains. Owned by the owner of the struct around it.
 */
#ifndef CAPU_BASE_BITS_H
#define CAPU_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BITS_NONE SIZE_MAX
#define BITS_LEVELS_MAX 11 /* 64 to the 11th is more than a size_t can count */

struct bits {
    uint64_t *words[BITS_LEVELS_MAX]; /* words[0]: the members; all levels are one allocation */
    size_t count;                     /* members are below this */
    unsigned level_count;
};

/* An empty set of integers below `count`. False: no host memory, or count is 0; *bits is untouched.
 */
bool bits_init(struct bits *bits, size_t count);

/* A zeroed set is fine. */
void bits_finish(struct bits *bits);

/* Raises the limit of members to `count` if that is more than now. False: no host memory, nothing
   has changed. */
bool bits_grow(struct bits *bits, size_t count);

/* Removes all members, at the cost of a memset over the words. */
void bits_clear(struct bits *bits);

/* Pre: index < count. Adding a member again and removing one that is not there are fine. */
void bits_add(struct bits *bits, size_t index);
void bits_remove(struct bits *bits, size_t index);
bool bits_has(const struct bits *bits, size_t index);

/* The smallest member at or above `from`, the largest at or below it; BITS_NONE if there is none.
   Any `from`. */
size_t bits_next(const struct bits *bits, size_t from);
size_t bits_previous(const struct bits *bits, size_t from);

/* How many members follow one another from `from`, itself included; counts to `limit` at most. */
size_t bits_run(const struct bits *bits, size_t from, size_t limit);

/* Whether the summaries agree with the words, and no bit at or after `count` is set. */
bool bits_validate(const struct bits *bits);

#endif
