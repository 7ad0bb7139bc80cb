/*
 * What the tests of the kernels share: seeded contents, buffers at odd addresses, comparison with a
 * reference, and the sweep over thread counts and addresses that must not change a bit.
 */
#ifndef CAPU_TESTS_UNIT_KERNELS_SUPPORT_H
#define CAPU_TESTS_UNIT_KERNELS_SUPPORT_H

#include "kernels/element.h"

#include <stddef.h>
#include <stdint.h>

#define SUPPORT_BUFFERS 32

/* One run of a case: where its buffers lie, and what it gave. */
struct support {
    uint64_t seed;
    uint64_t drawn;
    size_t shift; /* bytes by which buffers are off a 64-byte border */
    int is_reference_due;
    enum element element; /* of what an operation stores in either type */
    void *buffers[SUPPORT_BUFFERS];
    size_t buffer_count;
    unsigned char *result;
    size_t result_bytes;
};

typedef void (*support_case)(struct support *support, const void *shape);

/* TEST_SEED, or a fixed one; printed. */
uint64_t support_seed(void);

/* Evenly in [low, high). */
float support_draw(struct support *support, float low, float high);

/* A buffer of `bytes` at the case's shift, filled with bytes that are NaN as floats. */
void *support_buffer(struct support *support, size_t bytes);

/* A buffer of floats drawn from [low, high); and one that holds NaN, for outputs. */
float *support_floats(struct support *support, size_t count, float low, float high);
float *support_output(struct support *support, size_t count);

/* The same in the element type of the run. */
void *support_items(struct support *support, size_t count, float low, float high);
void *support_blank(struct support *support, size_t count);
double support_item(const struct support *support, const void *items, size_t index);
size_t support_bytes(const struct support *support, size_t count);

/* Adds to what must be the same in every run. */
void support_keep(struct support *support, const void *bytes, size_t count);

/* Fails unless |got - expected| <= tolerance (1 + |expected|). */
void support_near(const char *what, size_t index, double got, double expected, double tolerance);

/*
 * The same for an item in the element type of the run: in bf16 it may be off by its rounding too,
 * to the nearest, once.
 */
void support_stored(const struct support *support, const char *what, size_t index, double got,
                    double expected, double tolerance);

/*
 * Runs the case at one, two and three threads and at several shifts; the first run is checked
 * against the reference (is_reference_due), the others must give the same bytes. In fp32, or in the
 * element type given.
 */
void support_sweep(support_case run, const void *shape);
void support_sweep_in(enum element element, support_case run, const void *shape);

#endif
