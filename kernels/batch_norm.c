/* Declares the operands of batch_norm and runs it. */
#include "kernels/batch_norm.h"

#include "kernels/launch.h"

static size_t items(const struct batch_norm *norm)
{
    return (size_t)norm->batch * norm->channels * norm->plane;
}

capu_status batch_norm_forward(capu_context *context, const struct batch_norm *norm)
{
    size_t item_bytes = element_bytes(norm->element);
    size_t bytes = items(norm) * item_bytes;
    size_t parameter_bytes = norm->channels * item_bytes;
    size_t channel_bytes = norm->channels * sizeof(float);
    const capu_operand operands[] = {
        LAUNCH_READ(norm->input, bytes),
        LAUNCH_READ(norm->scale, parameter_bytes),
        LAUNCH_READ(norm->shift, parameter_bytes),
        LAUNCH_WRITE(norm->output, bytes),
        LAUNCH_WRITE(norm->saved_mean, channel_bytes),
        LAUNCH_WRITE(norm->saved_rstd, channel_bytes),
        LAUNCH_UPDATE(norm->running_mean, channel_bytes),
        LAUNCH_UPDATE(norm->running_variance, channel_bytes),
    };

    return launch_run(context, &(const struct launch){
                                   .name = "batch_norm_forward",
                                   .host = batch_norm_forward_host,
                                   .host_replay = batch_norm_replay_host,
                                   .cuda = LAUNCH_CUDA(batch_norm_forward_cuda),
                                   .cuda_replay = LAUNCH_CUDA(batch_norm_replay_cuda),
                                   .arguments = norm,
                                   .argument_bytes = sizeof(*norm),
                                   .operands = operands,
                                   .operand_count = sizeof(operands) / sizeof(operands[0]),
                                   .flops = items(norm) * 6,
                                   .needs = LAUNCH_NEEDS_SCRATCH,
                               });
}

capu_status batch_norm_infer(capu_context *context, const struct batch_norm *norm)
{
    size_t item_bytes = element_bytes(norm->element);
    size_t bytes = items(norm) * item_bytes;
    size_t parameter_bytes = norm->channels * item_bytes;
    size_t channel_bytes = norm->channels * sizeof(float);

    return LAUNCH(
        context, batch_norm_infer, norm, items(norm) * 2, LAUNCH_READ(norm->input, bytes),
        LAUNCH_READ(norm->scale, parameter_bytes), LAUNCH_READ(norm->shift, parameter_bytes),
        LAUNCH_READ(norm->running_mean, channel_bytes),
        LAUNCH_READ(norm->running_variance, channel_bytes), LAUNCH_WRITE(norm->output, bytes));
}

capu_status batch_norm_backward(capu_context *context, const struct batch_norm *norm)
{
    size_t item_bytes = element_bytes(norm->element);
    size_t bytes = items(norm) * item_bytes;
    size_t parameter_bytes = norm->channels * item_bytes;
    size_t channel_bytes = norm->channels * sizeof(float);

    return LAUNCH_WITH(
        LAUNCH_NEEDS_SCRATCH, context, batch_norm_backward, norm, items(norm) * 10,
        LAUNCH_READ(norm->input, bytes), LAUNCH_READ(norm->scale, parameter_bytes),
        LAUNCH_READ(norm->saved_mean, channel_bytes), LAUNCH_READ(norm->saved_rstd, channel_bytes),
        LAUNCH_UPDATE(norm->gradient, bytes), LAUNCH_WRITE(norm->scale_gradient, channel_bytes),
        LAUNCH_WRITE(norm->shift_gradient, channel_bytes));
}
