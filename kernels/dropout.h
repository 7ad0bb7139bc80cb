/*
 * Dropout: each item is zeroed with probability `rate`, and the others are divided by 1 - rate.
 * Seed and counter alone decide which ones, so the backward pass draws the same numbers again
 * instead of keeping a mask, and a replay gives the same result.
 */
#ifndef CAPU_KERNELS_DROPOUT_H
#define CAPU_KERNELS_DROPOUT_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dropout {
    const void *input;
    void *output;
    void *gradient; /* backward, in place: in, of the output; out, of the input */
    size_t count;
    uint64_t seed;
    uint64_t counter; /* different for each step and layer */
    float rate;       /* 0 <= rate < 1 */
    uint32_t element; /* enum element: type of the void buffers */
};

/* Reads input, writes output. */
capu_status dropout_forward(capu_context *context, const struct dropout *dropout);
/* Updates gradient. */
capu_status dropout_backward(capu_context *context, const struct dropout *dropout);

capu_status dropout_forward_host(capu_stream stream, const void *arguments);
capu_status dropout_backward_host(capu_stream stream, const void *arguments);

capu_status dropout_forward_cuda(capu_stream stream, const void *arguments);
capu_status dropout_backward_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
