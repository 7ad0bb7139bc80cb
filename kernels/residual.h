/*
 * A residual connection: output = input + branch. Backward, the gradient of the output is that of
 * both: residual_backward adds it to each.
 */
#ifndef CAPU_KERNELS_RESIDUAL_H
#define CAPU_KERNELS_RESIDUAL_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct residual {
    const void *input;
    const void *branch;
    void *output;
    const void *output_gradient;
    void *input_gradient;  /* added to */
    void *branch_gradient; /* added to; NULL: who wants it reads output_gradient */
    size_t count;
    uint32_t element; /* enum element, of all six */
};

/* Reads input, branch; writes output. */
capu_status residual_forward(capu_context *context, const struct residual *residual);
/* Reads output_gradient; updates input_gradient, branch_gradient. */
capu_status residual_backward(capu_context *context, const struct residual *residual);

capu_status residual_forward_host(capu_stream stream, const void *arguments);
capu_status residual_backward_host(capu_stream stream, const void *arguments);

capu_status residual_forward_cuda(capu_stream stream, const void *arguments);
capu_status residual_backward_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
