/*
 * Buffers on host and device, and an operation run on both: contents, results and comparison.
 *
 * A test makes its buffers, fills in the operation's arguments with their host addresses, and
 * pairs_run does the rest: it translates the addresses for the device.
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
    PAIR_BYTES,  /* compared to the bit */
    PAIR_SCRATCH /* not compared */
};

struct pair {
    enum pair_kind kind;
    size_t bytes;
    unsigned char *host;
    unsigned char *device;
    unsigned char *before; /* the host's contents before the run */
    unsigned char *first;  /* what the device's first run gave */
    unsigned char *second;
    void *device_start; /* what was allocated */
};

struct pairs {
    size_t shift; /* bytes by which device buffers are off a 256-byte border; half of it for bf16 */
    enum element element; /* of what an operation stores in either type */
    size_t count;
    uint64_t drawn;
    struct pair pair[PAIRS_LIMIT];
};

/* Drawn evenly from [low, high). */
float *pairs_floats(struct pairs *pairs, size_t count, float low, float high);
/* NaN: an item that is not written shows. */
float *pairs_output(struct pairs *pairs, size_t count);
/* Zeros, for what an operation adds to or writes in part. */
float *pairs_zeros(struct pairs *pairs, size_t count);
/* The same three in the pairs' element type, and an item of it. */
void *pairs_items(struct pairs *pairs, size_t count, float low, float high);
void *pairs_blank(struct pairs *pairs, size_t count);
void *pairs_clear(struct pairs *pairs, size_t count);
void pairs_set(const struct pairs *pairs, void *items, size_t index, float value);
float pairs_get(const struct pairs *pairs, const void *items, size_t index);
/* Whole numbers drawn from [0, limit). */
int32_t *pairs_numbers(struct pairs *pairs, size_t count, uint32_t limit);
uint8_t *pairs_bytes(struct pairs *pairs, size_t count);
float *pairs_scratch(struct pairs *pairs, size_t bytes);

/*
 * Runs the operation twice on the device and once on the host, from the same contents. Fails unless
 * the device gives the same bits twice, and every float of all buffers is within `tolerance`
 * (1 + |expected|) of the host's, a NaN only where the host has one. A bf16 item may also be one
 * unit in the last place off, unless the tolerance is 0. The host's results stay in the buffers,
 * for an operation that comes next.
 */
void pairs_run(struct pairs *pairs, const char *name, capu_run_function host,
               capu_run_function cuda, const void *arguments, size_t argument_bytes,
               double tolerance);

#define PAIRS_RUN(pairs_, function_, arguments_, tolerance_)                          \
    pairs_run((pairs_), #function_, function_##_host, function_##_cuda, (arguments_), \
              sizeof(*(arguments_)), (tolerance_))

/* Runs it once on the device alone, from the host's contents; the buffers then hold its results. */
void pairs_run_cuda(struct pairs *pairs, capu_run_function cuda, const void *arguments,
                    size_t argument_bytes);

void pairs_finish(struct pairs *pairs);

#endif
