/*
 * A dense layer: output = input weight^T + bias, over `rows` rows. The weight is outputs x inputs.
 * The parameters' gradients are fp32, whatever the element type.
 */
#ifndef CAPU_KERNELS_MATMUL_H
#define CAPU_KERNELS_MATMUL_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct matmul {
    const void *input;  /* rows x inputs */
    const void *weight; /* outputs x inputs */
    const void *bias;   /* outputs; NULL: none */
    void *output;       /* rows x outputs */
    const void *output_gradient;
    void *input_gradient;
    float *weight_gradient;
    float *bias_gradient; /* NULL: none */
    uint32_t rows;
    uint32_t inputs;
    uint32_t outputs;
    uint32_t accumulate; /* backward_weight: 1 adds to the gradients, 0 overwrites them */
    uint32_t element;    /* enum element: type of the void buffers */
};

/* Reads input, weight, bias; writes output. */
capu_status matmul_forward(capu_context *context, const struct matmul *matmul);
/* Reads output_gradient, weight; writes input_gradient. */
capu_status matmul_backward_input(capu_context *context, const struct matmul *matmul);
/* Reads output_gradient, input; writes weight_gradient and bias_gradient, or updates them with
 * `accumulate`. */
capu_status matmul_backward_weight(capu_context *context, const struct matmul *matmul);

capu_status matmul_forward_host(capu_stream stream, const void *arguments);
capu_status matmul_backward_input_host(capu_stream stream, const void *arguments);
capu_status matmul_backward_weight_host(capu_stream stream, const void *arguments);

capu_status matmul_forward_cuda(capu_stream stream, const void *arguments);
capu_status matmul_backward_input_cuda(capu_stream stream, const void *arguments);
capu_status matmul_backward_weight_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
