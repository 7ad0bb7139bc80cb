/*
 * Shared by the kernel tests: seeded contents, buffers at odd addresses, comparison with a
 * reference, and a sweep over thread counts and addresses, which must not change a single bit.
 */
#ifndef CAPU_TESTS_UNIT_KERNELS_SUPPORT_H
#define CAPU_TESTS_UNIT_KERNELS_SUPPORT_H

#include "kernels/element.h"

#include <check.h>

#include <stddef.h>
#include <stdint.h>

#define SUPPORT_BUFFERS 32

/* One run of a case: the placement of its buffers and its result. */
struct support {
    uint64_t seed;
    uint64_t drawn;
    size_t shift; /* offset of buffers from 64-byte alignment, in bytes */
    int is_reference_due;
    enum element element; /* type of the tensors that an operation can store in several types */
    void *buffers[SUPPORT_BUFFERS];
    size_t buffer_count;
    unsigned char *result;
    size_t result_bytes;
};

typedef void (*support_case)(struct support *support, const void *shape);

/* Returns TEST_SEED or a default, and prints it. */
uint64_t support_seed(void);

/* A number drawn uniformly from [low, high). */
float support_draw(struct support *support, float low, float high);

/* A buffer of `bytes` at the shift of the case, filled with bytes that read as NaN. */
void *support_buffer(struct support *support, size_t bytes);

/* A buffer of floats drawn from [low, high), and one full of NaN, for outputs. */
float *support_floats(struct support *support, size_t count, float low, float high);
float *support_output(struct support *support, size_t count);

/* The same, in the element type of the run. */
void *support_items(struct support *support, size_t count, float low, float high);
void *support_blank(struct support *support, size_t count);
double support_item(const struct support *support, const void *items, size_t index);
size_t support_bytes(const struct support *support, size_t count);

/* Adds bytes to the result, which must be the same in every run. */
void support_keep(struct support *support, const void *bytes, size_t count);

/* Fails unless |got - expected| <= tolerance (1 + |expected|). */
void support_near(const char *what, size_t index, double got, double expected, double tolerance);

/* The same for an item in the element type of the run: in bf16 it may also be off by one rounding.
 */
void support_stored(const struct support *support, const char *what, size_t index, double got,
                    double expected, double tolerance);

/*
 * Runs the case with one, two and three threads and at several shifts. The first run is compared
 * with the reference (is_reference_due); the others must give the same bytes. The element type is
 * fp32, or the one given.
 */
void support_sweep(support_case run, const void *shape);
void support_sweep_in(enum element element, support_case run, const void *shape);

/*
 * Defines the tests of an operation against its reference, and add_reference_tests, which adds them
 * to a test case: one sweep of `run_` per element of the array `shapes_`, in fp32 or in fp32 and
 * bf16.
 */
#define SUPPORT_TESTS(run_, shapes_)                                                              \
    SUPPORT_SWEEPS(matches_reference, ELEMENT_FP32, run_, shapes_)                                \
    static void add_reference_tests(TCase *tests)                                                 \
    {                                                                                             \
        tcase_add_loop_test(tests, matches_reference, 0, sizeof(shapes_) / sizeof((shapes_)[0])); \
    }

#define SUPPORT_TESTS_IN_BOTH_TYPES(run_, shapes_)                         \
    SUPPORT_SWEEPS(matches_reference, ELEMENT_FP32, run_, shapes_)         \
    SUPPORT_SWEEPS(matches_reference_in_bf16, ELEMENT_BF16, run_, shapes_) \
    static void add_reference_tests(TCase *tests)                          \
    {                                                                      \
        const int count = sizeof(shapes_) / sizeof((shapes_)[0]);          \
                                                                           \
        tcase_add_loop_test(tests, matches_reference, 0, count);           \
        tcase_add_loop_test(tests, matches_reference_in_bf16, 0, count);   \
    }

#define SUPPORT_SWEEPS(test_, element_, run_, shapes_)    \
    START_TEST(test_)                                     \
    {                                                     \
        support_sweep_in(element_, run_, &(shapes_)[_i]); \
    }                                                     \
    END_TEST

#endif
