/*
 * Layer normalisation: each row is normalised to mean 0 and variance 1, then scaled and shifted.
 * Statistics and the parameters' gradients are fp32, whatever the element type.
 */
#ifndef CAPU_KERNELS_LAYER_NORM_H
#define CAPU_KERNELS_LAYER_NORM_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct layer_norm {
    const void *input; /* rows x channels */
    const void *scale; /* channels */
    const void *shift; /* channels */
    void *output;
    float *mean; /* rows, for backward */
    float *rstd; /* rows, 1 / sqrt(variance + 1e-5), for backward */
    const void *output_gradient;
    void *input_gradient; /* accumulated: the residual connection around the norm has a gradient too
                           */
    float *scale_gradient; /* accumulated */
    float *shift_gradient; /* accumulated */
    uint32_t rows;
    uint32_t channels;
    uint32_t element; /* enum element: type of the void buffers */
};

/* Reads input, scale, shift; writes output, mean, rstd. */
capu_status layer_norm_forward(capu_context *context, const struct layer_norm *norm);
/*
 * Reads output_gradient, input, scale, mean, rstd; updates input_gradient, scale_gradient,
 * shift_gradient.
 */
capu_status layer_norm_backward(capu_context *context, const struct layer_norm *norm);

capu_status layer_norm_forward_host(capu_stream stream, const void *arguments);
capu_status layer_norm_backward_host(capu_stream stream, const void *arguments);

capu_status layer_norm_forward_cuda(capu_stream stream, const void *arguments);
capu_status layer_norm_backward_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
