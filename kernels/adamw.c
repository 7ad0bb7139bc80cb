/* Declares the operands of adamw and runs it. A range may span many tensors: each is then an
 * operand. */
#include "kernels/adamw.h"

#include "kernels/launch.h"

capu_status adamw_update(capu_context *context, const struct adamw *adamw)
{
    size_t bytes = adamw->count * sizeof(float);

    if (adamw->working != NULL) {
        return LAUNCH(
            context, adamw_update, adamw, adamw->count * 20, LAUNCH_READ(adamw->gradient, bytes),
            LAUNCH_UPDATE(adamw->first_moment, bytes), LAUNCH_UPDATE(adamw->second_moment, bytes),
            LAUNCH_UPDATE(adamw->parameter, bytes),
            LAUNCH_WRITE(adamw->working, adamw->count * sizeof(*adamw->working)));
    }
    return LAUNCH(context, adamw_update, adamw, adamw->count * 20,
                  LAUNCH_READ(adamw->gradient, bytes), LAUNCH_UPDATE(adamw->first_moment, bytes),
                  LAUNCH_UPDATE(adamw->second_moment, bytes),
                  LAUNCH_UPDATE(adamw->parameter, bytes));
}
