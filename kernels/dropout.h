/*
 * Dropout: each item is zeroed with probability `rate`, the others are divided by 1 - rate. Which,
 * follows from seed and counter alone; backward draws the same again instead of keeping a mask.
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
    void *gradient; /* backward, in place: of the output before, of the input after */
    size_t count;
    uint64_t seed;
    uint64_t counter; /* another one each step and layer */
    float rate;       /* 0 <= rate < 1 */
    uint32_t element; /* enum element, of what is void */
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
