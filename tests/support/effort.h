/*
 * How many repetitions a test runs. TEST_EFFORT is a percentage: 100 runs every case of a sweep and
 * every random program, as `make test-long` does; less runs a sample in which each kind of case
 * still occurs. Only repetitions may depend on it: a test of a single case always runs.
 */
#ifndef CAPU_TESTS_SUPPORT_EFFORT_H
#define CAPU_TESTS_SUPPORT_EFFORT_H

#include <stdint.h>
#include <stdlib.h>

/* If TEST_EFFORT is not set; `make check` uses the same. */
#define EFFORT_USUAL 10

/* Returns the effort, from 1 to 100. */
static inline uint64_t effort_percent(void)
{
    const char *given = getenv("TEST_EFFORT");
    uint64_t percent = given != NULL ? strtoull(given, NULL, 10) : EFFORT_USUAL;

    return percent < 1 ? 1 : percent > 100 ? 100 : percent;
}

/* Returns how many of `count` independent repetitions to run, at least one. */
static inline uint64_t effort_share(uint64_t count)
{
    uint64_t share = count * effort_percent() / 100;

    return share > 0 ? share : 1;
}

/*
 * Returns the position after this one in a sweep that counts from 1. A sample includes most of the
 * first positions, where the calls differ most. Later ones are mostly iterations of the same loop,
 * so their distance grows with the position.
 */
static inline uint64_t effort_next(uint64_t position)
{
    uint64_t percent = effort_percent();

    return position + 1 + position * (100 - percent) / (percent * 100);
}

#endif
