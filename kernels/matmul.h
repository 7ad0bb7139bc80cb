/*
 * A dense layer: output = input weight^T + bias, over `rows` rows. The weight is outputs x inputs.
 */
#ifndef CAPU_KERNELS_MATMUL_H
#define CAPU_KERNELS_MATMUL_H

#include "capuchin/op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct matmul {
    const float *input;  /* rows x inputs */
    const float *weight; /* outputs x inputs */
    const float *bias;   /* outputs; NULL: none */
    float *output;       /* rows x outputs */
    const float *output_gradient;
    float *input_gradient;
    float *weight_gradient;
    float *bias_gradient; /* NULL: none */
    uint32_t rows;
    uint32_t inputs;
    uint32_t outputs;
    uint32_t accumulate; /* backward_weight: 1 adds to the gradients, 0 overwrites them */
};

/* Reads input, weight, bias; writes output. */
capu_status matmul_forward(capu_context *context, const struct matmul *matmul);
/* Reads output_gradient, weight; writes input_gradient. */
capu_status matmul_backward_input(capu_context *context, const struct matmul *matmul);
/* Reads output_gradient, input; writes or updates weight_gradient, bias_gradient. */
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
