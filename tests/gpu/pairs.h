/*
 * Pairs of buffers on host and device, to run an operation on both and compare the results.
 *
 * A test creates its buffers and fills in the arguments of the operation with host addresses.
 * pairs_run does the rest, including the translation of the addresses for the device.
 */
#ifndef CAPU_TESTS_GPU_PAIRS_H
#define CAPU_TESTS_GPU_PAIRS_H

#include "capuchin/op.h"

#include "kernels/element.h"

#include <stddef.h>
#include <stdint.h>

#define PAIRS_LIMIT 24

enum pair_kind {
    PAIR_FLOATS,
    PAIR_BF16,
    PAIR_BYTES,  /* compared bit by bit */
    PAIR_SCRATCH /* not compared */
};

struct pair {
    enum pair_kind kind;
    size_t bytes;
    unsigned char *host;
    unsigned char *device;
    unsigned char *before; /* the host's contents before the run */
    unsigned char *first;  /* result of the first run on the device */
    unsigned char *second; /* result of the second run */
    void *device_start;    /* start of the allocation that contains `device` */
    size_t device_bytes;   /* of that allocation */
};

struct pairs {
    size_t shift; /* offset of device buffers from a 256-byte boundary; half of it for bf16 */
    enum element element; /* element type of the buffers that can have either type */
    bool has_nan;         /* pairs_set has set an item to NaN */
    size_t count;
    uint64_t drawn; /* random numbers drawn */
    struct pair pair[PAIRS_LIMIT];
};

/* Random floats, uniform in [low, high). */
float *pairs_floats(struct pairs *pairs, size_t count, float low, float high);
/* Floats set to NaN, so that an item that is not written is found. */
float *pairs_output(struct pairs *pairs, size_t count);
/* Zeros, for buffers that an operation adds to or writes in part. */
float *pairs_zeros(struct pairs *pairs, size_t count);
/* The same in the element type of the pairs (random, NaN, zeros), and access to an item. */
void *pairs_items(struct pairs *pairs, size_t count, float low, float high);
void *pairs_blank(struct pairs *pairs, size_t count);
void *pairs_clear(struct pairs *pairs, size_t count);
void pairs_set(struct pairs *pairs, void *items, size_t index, float value);
float pairs_get(const struct pairs *pairs, const void *items, size_t index);
/* Random integers in [0, limit); bytes; scratch space. */
int32_t *pairs_numbers(struct pairs *pairs, size_t count, uint32_t limit);
uint8_t *pairs_bytes(struct pairs *pairs, size_t count);
float *pairs_scratch(struct pairs *pairs, size_t bytes);

/*
 * Runs the operation twice on the device and once on the host, from the same contents. Fails the
 * test unless both runs on the device give the same bits, and every float in every buffer differs
 * from the host's by at most tolerance * (1 + |expected|). NaN is allowed only where the host has
 * one. A bf16 item may differ by one more unit in the last place, unless the tolerance is 0. The
 * host's results stay in the buffers, as the input of the next operation.
 */
void pairs_run(struct pairs *pairs, const char *name, capu_run_function host,
               capu_run_function cuda, const void *arguments, size_t argument_bytes,
               double tolerance);

#define PAIRS_RUN(pairs_, function_, arguments_, tolerance_)                          \
    pairs_run((pairs_), #function_, function_##_host, function_##_cuda, (arguments_), \
              sizeof(*(arguments_)), (tolerance_))

/* Runs the operation once, only on the device, from the host's contents. The buffers then hold its
   results. */
void pairs_run_cuda(struct pairs *pairs, capu_run_function cuda, const void *arguments,
                    size_t argument_bytes);

void pairs_finish(struct pairs *pairs);

#endif
