/*
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC11):
 * a stateless function from seed and counter to 128 random bits. So a replay draws the same
 * numbers, and so does every split into tiles.
 */
#ifndef CAPU_KERNELS_RANDOM_H
#define CAPU_KERNELS_RANDOM_H

#include <stdint.h>

/* Kernels draw the same numbers as the host. */
#ifdef __CUDACC__
#define RANDOM_INLINE static inline __host__ __device__
#else
#define RANDOM_INLINE static inline
#endif

struct random_block {
    uint32_t word[4];
};

RANDOM_INLINE struct random_block random_draw(uint64_t seed, uint64_t stream, uint64_t counter)
{
    struct random_block block = {
        {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)}};
    uint32_t key0 = (uint32_t)seed;
    uint32_t key1 = (uint32_t)(seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t product0 = UINT64_C(0xD2511F53) * block.word[0];
        uint64_t product1 = UINT64_C(0xCD9E8D57) * block.word[2];

        block.word[0] = (uint32_t)(product1 >> 32) ^ block.word[1] ^ key0;
        block.word[1] = (uint32_t)product1;
        block.word[2] = (uint32_t)(product0 >> 32) ^ block.word[3] ^ key1;
        block.word[3] = (uint32_t)product0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return block;
}

/* Uniform in [0, 1), with 24 random bits. */
RANDOM_INLINE float random_unit(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

#endif
