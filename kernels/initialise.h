/*
 * The initial contents of a tensor: a constant, or random numbers. These depend on seed and counter
 * only, so they are the same on every device and for every split of the work. In bf16 they are the
 * rounded fp32 numbers.
 */
#ifndef CAPU_KERNELS_INITIALISE_H
#define CAPU_KERNELS_INITIALISE_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

enum initialise_kind {
    INITIALISE_CONSTANT, /* all items are `a` */
    INITIALISE_UNIFORM,  /* uniform in [a, b) */
    INITIALISE_NORMAL    /* mean `a`, standard deviation `b` */
};

struct initialise {
    void *output;
    size_t count;
    uint64_t seed;
    uint64_t counter; /* different for each tensor */
    uint32_t kind;    /* enum initialise_kind */
    float a;
    float b;
    uint32_t element; /* enum element */
};

/* Writes output. */
capu_status initialise(capu_context *context, const struct initialise *arguments);

capu_status initialise_host(capu_stream stream, const void *arguments);

capu_status initialise_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
