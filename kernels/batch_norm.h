/*
 * Batch normalisation of batch x channels x plane: each channel is normalised to mean 0 and
 * variance 1, then scaled and shifted. Training uses the statistics of the batch and maintains
 * running statistics for inference. Statistics and the parameters' gradients are fp32, whatever the
 * element type.
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
    float *running_variance; /* biased: divided by the count, not by the count minus 1 */
    float *saved_mean;       /* of the batch, for backward */
    float *saved_rstd;       /* 1 / sqrt(variance + epsilon) of the batch, for backward */
    void *gradient;          /* backward, in place: in, of the output; out, of the input */
    float *scale_gradient;
    float *shift_gradient;
    uint32_t batch;
    uint32_t channels;
    uint32_t plane; /* height x width */
    float momentum; /* weight of the batch in the running statistics */
    float epsilon;
    uint32_t element; /* enum element: type of the void buffers */
};

/*
 * Reads input, scale, shift; writes output, saved_mean, saved_rstd; updates running_mean and
 * running_variance. A replay leaves those two unchanged.
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
