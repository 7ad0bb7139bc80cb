/*
 * Hashes: numbers that differ where what they are made of differs, but for accidents.
 *
 * They need not withstand an attack, and they are not written to files. Whoever cannot live with an
 * accident compares what was hashed as well.
 */
#ifndef CAPU_BASE_HASH_H
#define CAPU_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* 2^64 divided by the golden ratio: odd, and without structure. */
#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15)

/* Mixes a word into a hash. The order of the words counts. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * HASH_FACTOR;
    return hash ^ (hash >> 29);
}

/* Mixes two words. Each mix of a chain waits for the one before; the second word is multiplied
   beside the chain. */
static inline uint64_t hash_mix_two(uint64_t hash, uint64_t first, uint64_t second)
{
    return hash_mix(hash, first ^ second * UINT64_C(0xd6e8feb86659fd93));
}

/* The place of a key among 2^bits. Keys that differ in a few middle bits, as addresses do, are
   spread over all places. Pre: bits is from 1 to 63. */
static inline size_t hash_place(uint64_t key, unsigned bits)
{
    return (size_t)((key * HASH_FACTOR) >> (64 - bits));
}

/* The hash of some bytes, at most INT64_MAX: it and the numbers after it are keys of a table. */
uint64_t hash_bytes(const void *bytes, size_t count);

#endif
