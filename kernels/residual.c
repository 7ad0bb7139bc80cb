/* Declares the operands of residual and runs it. */
#include "kernels/residual.h"

#include "kernels/launch.h"

capu_status residual_forward(capu_context *context, const struct residual *residual)
{
    size_t bytes = residual->count * element_bytes(residual->element);

    return LAUNCH(context, residual_forward, residual, residual->count,
                  LAUNCH_READ(residual->input, bytes), LAUNCH_READ(residual->branch, bytes),
                  LAUNCH_WRITE(residual->output, bytes));
}

capu_status residual_backward(capu_context *context, const struct residual *residual)
{
    size_t bytes = residual->count * element_bytes(residual->element);

    if (residual->branch_gradient == NULL) {
        return LAUNCH(context, residual_backward, residual, residual->count,
                      LAUNCH_READ(residual->output_gradient, bytes),
                      LAUNCH_UPDATE(residual->input_gradient, bytes));
    }
    return LAUNCH(context, residual_backward, residual, 2 * residual->count,
                  LAUNCH_READ(residual->output_gradient, bytes),
                  LAUNCH_UPDATE(residual->input_gradient, bytes),
                  LAUNCH_UPDATE(residual->branch_gradient, bytes));
}
