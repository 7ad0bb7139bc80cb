/* Declares the operands of gradient_norm and runs it. */
#include "kernels/gradient_norm.h"

#include "kernels/launch.h"

capu_status gradient_norm(capu_context *context, const struct gradient_norm *arguments)
{
    return LAUNCH_WITH(LAUNCH_NEEDS_SCRATCH, context, gradient_norm, arguments,
                       arguments->count * 2,
                       LAUNCH_READ(arguments->gradient, arguments->count * sizeof(float)),
                       LAUNCH_WRITE(arguments->norm, sizeof(float)));
}
