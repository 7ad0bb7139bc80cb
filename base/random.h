/*
 * Seeded random numbers: the same seed gives the same sequence on every machine.
 *
 * Not for secrets. The kernels have a generator of their own (kernels/random.h), which is a
 * function of seed and counter, since a replay must draw what the op drew.
 */
#ifndef CAPU_BASE_RANDOM_H
#define CAPU_BASE_RANDOM_H

#include "base/assert.h"

#include <stdint.h>

/* The next number of the sequence that starts with *state (splitmix64). Any seed is good, 0 too. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t bits = *state += 0x9e3779b97f4a7c15u;

    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
}

/* The next number of another sequence (xorshift64*), which the planners' searches draw: plans
   depend on it. Its upper bits are the good ones. Pre: *state is not 0. */
static inline uint64_t random_xorshift(uint64_t *state)
{
    ASSERT(*state != 0);
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

#endif
