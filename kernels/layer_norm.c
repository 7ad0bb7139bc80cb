/* Declares the operands of layer_norm and runs it. */
#include "kernels/layer_norm.h"

#include "kernels/launch.h"

capu_status layer_norm_forward(capu_context *context, const struct layer_norm *norm)
{
    size_t row_bytes = norm->rows * sizeof(float);
    size_t channel_bytes = norm->channels * element_bytes(norm->element);
    size_t bytes = norm->rows * channel_bytes;

    return LAUNCH(context, layer_norm_forward, norm, UINT64_C(8) * norm->rows * norm->channels,
                  LAUNCH_READ(norm->input, bytes), LAUNCH_READ(norm->scale, channel_bytes),
                  LAUNCH_READ(norm->shift, channel_bytes), LAUNCH_WRITE(norm->output, bytes),
                  LAUNCH_WRITE(norm->mean, row_bytes), LAUNCH_WRITE(norm->rstd, row_bytes));
}

capu_status layer_norm_backward(capu_context *context, const struct layer_norm *norm)
{
    size_t row_bytes = norm->rows * sizeof(float);
    size_t gradient_bytes = norm->channels * sizeof(float);
    size_t channel_bytes = norm->channels * element_bytes(norm->element);
    size_t bytes = norm->rows * channel_bytes;

    return LAUNCH_WITH(LAUNCH_NEEDS_SCRATCH, context, layer_norm_backward, norm,
                       UINT64_C(16) * norm->rows * norm->channels,
                       LAUNCH_READ(norm->output_gradient, bytes), LAUNCH_READ(norm->input, bytes),
                       LAUNCH_READ(norm->scale, channel_bytes), LAUNCH_READ(norm->mean, row_bytes),
                       LAUNCH_READ(norm->rstd, row_bytes),
                       LAUNCH_UPDATE(norm->input_gradient, bytes),
                       LAUNCH_UPDATE(norm->scale_gradient, gradient_bytes),
                       LAUNCH_UPDATE(norm->shift_gradient, gradient_bytes));
}
