/*
 * How much a test repeats itself. TEST_EFFORT is a percentage: 100 runs every case of a sweep and
 * every random program, as `make test-long` does; less runs a sample in which each kind of case
 * still occurs. Only what repeats may depend on it: a test of one case runs at every effort.
 */
#ifndef CAPU_TESTS_SUPPORT_EFFORT_H
#define CAPU_TESTS_SUPPORT_EFFORT_H

#include <stdint.h>
#include <stdlib.h>

/* Unset, it is what `make test` gives the plain build. */
#define EFFORT_USUAL 10

/* From 1 to 100. */
static inline uint64_t effort_percent(void)
{
    const char *given = getenv("TEST_EFFORT");
    uint64_t percent = given != NULL ? strtoull(given, NULL, 10) : EFFORT_USUAL;

    return percent < 1 ? 1 : percent > 100 ? 100 : percent;
}

/* How many of `count` independent repetitions to run; at least one. */
static inline uint64_t effort_share(uint64_t count)
{
    uint64_t share = count * effort_percent() / 100;

    return share > 0 ? share : 1;
}

/* The position after this one in a sweep that counts from 1. A sample takes the first positions
   densely, where the calls differ most, and later ones, which are mostly iterations of the same
   loop, at distances that grow with the position. */
static inline uint64_t effort_next(uint64_t position)
{
    uint64_t percent = effort_percent();

    return position + 1 + position * (100 - percent) / (percent * 100);
}

#endif
