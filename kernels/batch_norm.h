/*
 * Batch normalisation of batch x channels x plane: each channel to mean 0 and variance 1, then
 * scaled and shifted. Training uses the batch's own statistics and keeps running ones for
 * inference. Statistics and the parameters' gradients are fp32, whatever the rest is.
 */
#ifndef CAPU_KERNELS_BATCH_NORM_H
#define CAPU_KERNELS_BATCH_NORM_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct batch_norm {
    const void *input;
    void *output;
    const void *scale; /* channels, like all that follow but the gradient */
    const void *shift;
    float *running_mean;
    float *running_variance; /* squares are divided by the count, not by one less */
    float *saved_mean;       /* of the batch, for backward */
    float *saved_rstd;       /* 1 / sqrt(variance + epsilon) of the batch, for backward */
    void *gradient;          /* backward, in place: of the output before, of the input after */
    float *scale_gradient;
    float *shift_gradient;
    uint32_t batch;
    uint32_t channels;
    uint32_t plane; /* height x width */
    float momentum; /* weight of the batch in the running statistics */
    float epsilon;
    uint32_t element; /* enum element, of what is void */
};

/*
 * Reads input, scale, shift; writes output, saved_mean, saved_rstd; updates running_mean and
 * running_variance. A replay leaves those two alone.
 */
capu_status batch_norm_forward(capu_context *context, const struct batch_norm *norm);
/* Reads input, scale, shift, running_mean, running_variance; writes output. */
capu_status batch_norm_infer(capu_context *context, const struct batch_norm *norm);
/*
 * Reads input, scale, saved_mean, saved_rstd; updates gradient; writes scale_gradient,
 * shift_gradient.
 */
capu_status batch_norm_backward(capu_context *context, const struct batch_norm *norm);

capu_status batch_norm_forward_host(capu_stream stream, const void *arguments);
capu_status batch_norm_replay_host(capu_stream stream, const void *arguments);
capu_status batch_norm_infer_host(capu_stream stream, const void *arguments);
capu_status batch_norm_backward_host(capu_stream stream, const void *arguments);

capu_status batch_norm_forward_cuda(capu_stream stream, const void *arguments);
capu_status batch_norm_replay_cuda(capu_stream stream, const void *arguments);
capu_status batch_norm_infer_cuda(capu_stream stream, const void *arguments);
capu_status batch_norm_backward_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
