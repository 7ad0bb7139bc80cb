/*
 * A residual connection: output = input + branch. The gradient of the output is that of both terms:
 * residual_backward adds it to the gradient of each.
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
    void *input_gradient;  /* accumulated */
    void *branch_gradient; /* accumulated; NULL: output_gradient is read in its place */
    size_t count;
    uint32_t element; /* enum element: type of all six buffers */
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
