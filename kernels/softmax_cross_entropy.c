/* Declares the operands of softmax_cross_entropy and runs it. */
#include "kernels/softmax_cross_entropy.h"

#include "kernels/launch.h"

capu_status softmax_cross_entropy_forward(capu_context *context,
                                          const struct softmax_cross_entropy *arguments)
{
    size_t row_bytes = arguments->rows * sizeof(float);
    size_t bytes = (size_t)arguments->rows * arguments->classes * element_bytes(arguments->element);

    return LAUNCH(
        context, softmax_cross_entropy_forward, arguments,
        UINT64_C(16) * arguments->rows * arguments->classes, LAUNCH_READ(arguments->logits, bytes),
        LAUNCH_READ(arguments->labels, arguments->rows * sizeof(int32_t)),
        LAUNCH_WRITE(arguments->probabilities, bytes), LAUNCH_WRITE(arguments->losses, row_bytes),
        LAUNCH_WRITE(arguments->mean, sizeof(float)));
}

capu_status softmax_cross_entropy_backward(capu_context *context,
                                           const struct softmax_cross_entropy *arguments)
{
    size_t bytes = (size_t)arguments->rows * arguments->classes * element_bytes(arguments->element);

    return LAUNCH(context, softmax_cross_entropy_backward, arguments,
                  UINT64_C(2) * arguments->rows * arguments->classes,
                  LAUNCH_READ(arguments->probabilities, bytes),
                  LAUNCH_READ(arguments->labels, arguments->rows * sizeof(int32_t)),
                  LAUNCH_WRITE(arguments->gradient, bytes));
}
