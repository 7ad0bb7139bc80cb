/*
 * Numbers for allocations that do not depend on addresses: an allocation gets the lowest number
 * that no other one has. A program that allocates and frees the same memory in each iteration
 * thereby gets the same numbers in each, wherever the memory is.
 *
 * Zeroed is empty. Owned by one thread.
 */
#ifndef CAPU_INTERPOSE_ORDINALS_H
#define CAPU_INTERPOSE_ORDINALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ordinals {
    uint64_t *taken; /* a bit per number; owned */
    size_t count, capacity;
    size_t first; /* all words before this one are full */
};

void ordinals_finish(struct ordinals *ordinals);

/* Takes the lowest number that is free. False: no host memory. */
bool ordinals_take(struct ordinals *ordinals, uint64_t *number);

/* Pre: the number is taken. */
void ordinals_give(struct ordinals *ordinals, uint64_t number);

#endif
