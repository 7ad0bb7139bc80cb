/* Numbers for allocations, see ordinals.h. */
#include "interpose/period/ordinals.h"

#include "base/array.h"

#include <stdlib.h>

enum { BITS = 64 };

void ordinals_finish(struct ordinals *ordinals)
{
    free(ordinals->taken);
    *ordinals = (struct ordinals){0};
}

bool ordinals_take(struct ordinals *ordinals, uint64_t *number)
{
    unsigned bit;

    while (ordinals->first < ordinals->count && ordinals->taken[ordinals->first] == UINT64_MAX) {
        ordinals->first++;
    }
    if (ordinals->first == ordinals->count) {
        if (!array_reserve(&ordinals->taken, &ordinals->capacity, ordinals->count + 1,
                           sizeof(ordinals->taken[0]))) {
            return false;
        }
        ordinals->taken[ordinals->count++] = 0;
    }
    bit = (unsigned)__builtin_ctzll(~ordinals->taken[ordinals->first]);
    ordinals->taken[ordinals->first] |= UINT64_C(1) << bit;
    *number = ordinals->first * BITS + bit;
    return true;
}

void ordinals_give(struct ordinals *ordinals, uint64_t number)
{
    size_t word = (size_t)(number / BITS);

    ordinals->taken[word] &= ~(UINT64_C(1) << number % BITS);
    ordinals->first = word < ordinals->first ? word : ordinals->first;
}
