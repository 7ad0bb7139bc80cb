/* Declares the operands of relu and runs it. */
#include "kernels/relu.h"

#include "kernels/launch.h"

capu_status relu_forward(capu_context *context, const struct relu *relu)
{
    size_t bytes = relu->count * element_bytes(relu->element);

    return LAUNCH(context, relu_forward, relu, relu->count, LAUNCH_READ(relu->input, bytes),
                  LAUNCH_WRITE(relu->output, bytes));
}

capu_status relu_backward(capu_context *context, const struct relu *relu)
{
    size_t bytes = relu->count * element_bytes(relu->element);

    return LAUNCH(context, relu_backward, relu, relu->count, LAUNCH_READ(relu->output, bytes),
                  LAUNCH_UPDATE(relu->gradient, bytes));
}
