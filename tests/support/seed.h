/* Seeds of random tests: from TEST_SEED, or else from the clock. They are printed, so that a
   failure can be repeated. */
#ifndef CAPU_TESTS_SUPPORT_SEED_H
#define CAPU_TESTS_SUPPORT_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t seed_start(const char *test)
{
    const char *given = getenv("TEST_SEED");
    struct timespec now;
    uint64_t seed;

    if (given != NULL) {
        seed = strtoull(given, NULL, 0);
    } else {
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
    }
    printf("%s: TEST_SEED=%llu\n", test, (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

/* The next number of the sequence (a linear congruential generator, mixed). */
static inline uint64_t seed_next(uint64_t *state)
{
    uint64_t mixed;

    *state = *state * 6364136223846793005u + 1442695040888963407u;
    mixed = (*state ^ (*state >> 29)) * 0xff51afd7ed558ccdu;
    return mixed ^ (mixed >> 32);
}

/* The next number below `limit`, which is not 0. */
static inline uint64_t seed_below(uint64_t *state, uint64_t limit)
{
    return seed_next(state) % limit;
}

#endif
