/* Declares the operands of initialise and runs it. */
#include "kernels/initialise.h"

#include "kernels/launch.h"

capu_status initialise(capu_context *context, const struct initialise *arguments)
{
    return LAUNCH(
        context, initialise, arguments, arguments->count * 16,
        LAUNCH_WRITE(arguments->output, arguments->count * element_bytes(arguments->element)));
}
