/*
 * Shared by the tests of the kernels: the loops over shapes, alignments and element types, and the
 * tolerances between device and host.
 */
#ifndef CAPU_TESTS_GPU_KERNELS_TEST_H
#define CAPU_TESTS_GPU_KERNELS_TEST_H

#include "tests/gpu/pairs.h"

#include <check.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Operations that can store fp32 or bf16 are tested with both. */
static const enum element elements[] = {ELEMENT_FP32, ELEMENT_BF16};
#define ELEMENT_COUNT (sizeof(elements) / sizeof(elements[0]))

/* Tolerance for float sums of some hundreds of terms, added in another order. */
#define NEAR 2e-5
/* Tolerance for single operations, with and without contraction. */
#define CLOSE 1e-6

/* Offsets of buffers from a 256-byte boundary. */
static const size_t shifts[] = {0, sizeof(float)};
#define SHIFT_COUNT (sizeof(shifts) / sizeof(shifts[0]))

static const size_t counts[] = {1, 1000, 4099, 20000003};

/* The shift and the index of the shape for the i-th run of a test with LOOP. */
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

/* The same for LOOP_IN, which also loops over element types. */
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

/* Tolerance for matrix products with `depth` terms, whose factors may be rounded first
   (KERNELS_MATMUL). */
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

/* Whether to run the large shapes at the end of each table, which are too slow for the test driver
   and for tools such as compute-sanitizer. */
static inline bool wants_large(void)
{
    return getenv("KERNELS_SMALL") == NULL;
}

#define LOOP(tests, test, items, large)                                           \
    tcase_add_loop_test(tests, test, 0,                                           \
                        (int)(SHIFT_COUNT * (sizeof(items) / sizeof((items)[0]) - \
                                             (wants_large() ? 0u : (unsigned)(large)))))
/* Runs the large shapes only aligned, since their host implementations are slow. */
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

/* Adds the tests of the operations of image networks. */
void kernels_images_add(TCase *tests);

/* Adds the tests of attention; `product_tests` are those that KERNELS_MATMUL affects. */
void kernels_attention_add(TCase *tests, TCase *product_tests);

#endif
