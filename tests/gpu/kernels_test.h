/*
 * What the tests of the kernels share: what they loop over, shapes at two addresses and in the
 * types that an operation stores, and how near device and host are.
 */
#ifndef CAPU_TESTS_GPU_KERNELS_TEST_H
#define CAPU_TESTS_GPU_KERNELS_TEST_H

#include "tests/gpu/pairs.h"

#include <check.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Operations that store fp32 or bf16 are tested with both. */
static const enum element elements[] = {ELEMENT_FP32, ELEMENT_BF16};
#define ELEMENT_COUNT (sizeof(elements) / sizeof(elements[0]))

/* Float sums in other orders, over some hundreds of terms. */
#define NEAR 2e-5
/* Single operations, with and without contraction. */
#define CLOSE 1e-6

/* Buffers at a 256-byte border, and one float off. */
static const size_t shifts[] = {0, sizeof(float)};
#define SHIFT_COUNT (sizeof(shifts) / sizeof(shifts[0]))

static const size_t counts[] = {1, 1000, 4099, 20000003};

/* What a test loops over: a shift, and a count or shape. */
static inline struct pairs pairs_of(int i)
{
    struct pairs pairs = {};

    pairs.shift = shifts[(size_t)i % SHIFT_COUNT];
    return pairs;
}

static inline size_t shape_of(int i)
{
    return (size_t)i / SHIFT_COUNT;
}

/* And a test that loops over element types too. */
static inline struct pairs pairs_in(int i)
{
    struct pairs pairs = {};

    pairs.element = elements[(size_t)i % ELEMENT_COUNT];
    pairs.shift = shifts[(size_t)i / ELEMENT_COUNT % SHIFT_COUNT];
    return pairs;
}

static inline size_t shape_in(int i)
{
    return (size_t)i / ELEMENT_COUNT / SHIFT_COUNT;
}

/* Of products whose factors are rounded first (KERNELS_MATMUL), over `depth` terms. */
static inline double product_tolerance(size_t depth)
{
    const char *arithmetic = getenv("KERNELS_MATMUL"); /* for factors stored in fp32 */
    double rounding = 2e-6;                            /* fp32, sums in another order */

    if (arithmetic != NULL && strcmp(arithmetic, "tf32") == 0) {
        rounding = 1e-3;
    } else if (arithmetic != NULL && strcmp(arithmetic, "bf16") == 0) {
        rounding = 8e-3;
    }
    return rounding * (1.0 + sqrt((double)depth));
}

/* The last shapes of a table are large: too much for the emulation, and for checking tools. */
static inline bool wants_large(void)
{
#ifdef KERNELS_EMULATED
    return false;
#else
    return getenv("KERNELS_SMALL") == NULL;
#endif
}

#define LOOP(tests, test, items, large)                                           \
    tcase_add_loop_test(tests, test, 0,                                           \
                        (int)(SHIFT_COUNT * (sizeof(items) / sizeof((items)[0]) - \
                                             (wants_large() ? 0u : (unsigned)(large)))))
/* Of these the large shapes are only aligned: their host side takes long enough. */
#define LOOP_IN(tests, test, items, large)                                          \
    do {                                                                            \
        size_t count_ = sizeof(items) / sizeof((items)[0]);                         \
        size_t variants_ = SHIFT_COUNT * ELEMENT_COUNT;                             \
                                                                                    \
        tcase_add_loop_test(tests, test, 0, (int)(variants_ * (count_ - (large)))); \
        for (size_t i_ = count_ - (large); wants_large() && i_ < count_; i_++) {    \
            tcase_add_loop_test(tests, test, (int)(variants_ * i_),                 \
                                (int)(variants_ * i_ + ELEMENT_COUNT));             \
        }                                                                           \
    } while (0)

/* The tests of what networks on images are made of. */
void kernels_images_add(TCase *tests);

#endif
