/* A small seeded generator (splitmix64) for adaptors: the same seed, the same delays and faults. */
#ifndef CAPU_DEVICE_RANDOM_H
#define CAPU_DEVICE_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
    uint64_t bits = *state += 0x9e3779b97f4a7c15u;

    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
}

#endif
