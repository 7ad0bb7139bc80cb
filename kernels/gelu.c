/* Declares the operands of gelu and runs it. */
#include "kernels/gelu.h"

#include "kernels/launch.h"

/* An exponential and a polynomial around it. */
#define FLOPS_PER_ITEM 30

capu_status gelu_forward(capu_context *context, const struct gelu *gelu)
{
    size_t bytes = gelu->count * element_bytes(gelu->element);

    return LAUNCH(context, gelu_forward, gelu, gelu->count * FLOPS_PER_ITEM,
                  LAUNCH_READ(gelu->input, bytes), LAUNCH_WRITE(gelu->output, bytes));
}

capu_status gelu_backward(capu_context *context, const struct gelu *gelu)
{
    size_t bytes = gelu->count * element_bytes(gelu->element);

    return LAUNCH(context, gelu_backward, gelu, gelu->count * FLOPS_PER_ITEM,
                  LAUNCH_READ(gelu->input, bytes), LAUNCH_UPDATE(gelu->gradient, bytes));
}
