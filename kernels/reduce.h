/*
 * Sums in a fixed order. Floating-point addition is not associative, so the order decides the bits,
 * and a replay must repeat them. Sixteen independent lanes let the compiler use vectors without
 * reordering anything: element i always goes to lane i mod 16, counted from the first element and
 * not from an aligned address; then the lanes are added up, then the tail.
 */
#ifndef CAPU_KERNELS_REDUCE_H
#define CAPU_KERNELS_REDUCE_H

#include <stddef.h>

typedef float reduce_lanes __attribute__((vector_size(16), aligned(4), may_alias));

static inline float reduce_join(const reduce_lanes lanes[4])
{
    reduce_lanes sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static inline float reduce_sum(const float *x, size_t count)
{
    reduce_lanes lanes[4] = {{0}, {0}, {0}, {0}};
    size_t i = 0;
    float sum;

    for (; i + 16 <= count; i += 16) {
        lanes[0] += *(const reduce_lanes *)(x + i);
        lanes[1] += *(const reduce_lanes *)(x + i + 4);
        lanes[2] += *(const reduce_lanes *)(x + i + 8);
        lanes[3] += *(const reduce_lanes *)(x + i + 12);
    }
    sum = reduce_join(lanes);
    for (; i < count; i++) {
        sum += x[i];
    }
    return sum;
}

/* The sum of (x - x_shift) * (y - y_shift). */
static inline float reduce_product(const float *x, float x_shift, const float *y, float y_shift,
                                   size_t count)
{
    reduce_lanes lanes[4] = {{0}, {0}, {0}, {0}};
    size_t i = 0;
    float sum;

    for (; i + 16 <= count; i += 16) {
        for (size_t lane = 0; lane < 4; lane++) {
            lanes[lane] += (*(const reduce_lanes *)(x + i + 4 * lane) - x_shift) *
                           (*(const reduce_lanes *)(y + i + 4 * lane) - y_shift);
        }
    }
    sum = reduce_join(lanes);
    for (; i < count; i++) {
        sum += (x[i] - x_shift) * (y[i] - y_shift);
    }
    return sum;
}

#endif
