/* Declares the operands of dropout and runs it. */
#include "kernels/dropout.h"

#include "kernels/launch.h"

/* Philox is ten rounds of two multiplications for four items. */
#define FLOPS_PER_ITEM 8

capu_status dropout_forward(capu_context *context, const struct dropout *dropout)
{
    size_t bytes = dropout->count * element_bytes(dropout->element);

    return LAUNCH(context, dropout_forward, dropout, dropout->count * FLOPS_PER_ITEM,
                  LAUNCH_READ(dropout->input, bytes), LAUNCH_WRITE(dropout->output, bytes));
}

capu_status dropout_backward(capu_context *context, const struct dropout *dropout)
{
    size_t bytes = dropout->count * element_bytes(dropout->element);

    return LAUNCH(context, dropout_backward, dropout, dropout->count * FLOPS_PER_ITEM,
                  LAUNCH_UPDATE(dropout->gradient, bytes));
}
