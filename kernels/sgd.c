/* Declares the operands of sgd and runs it. */
#include "kernels/sgd.h"

#include "kernels/launch.h"

capu_status sgd_update(capu_context *context, const struct sgd *sgd)
{
    size_t bytes = sgd->count * sizeof(float);

    if (sgd->working != NULL) {
        return LAUNCH(context, sgd_update, sgd, sgd->count * 6, LAUNCH_READ(sgd->gradient, bytes),
                      LAUNCH_UPDATE(sgd->velocity, bytes), LAUNCH_UPDATE(sgd->parameter, bytes),
                      LAUNCH_WRITE(sgd->working, sgd->count * sizeof(*sgd->working)));
    }
    return LAUNCH(context, sgd_update, sgd, sgd->count * 6, LAUNCH_READ(sgd->gradient, bytes),
                  LAUNCH_UPDATE(sgd->velocity, bytes), LAUNCH_UPDATE(sgd->parameter, bytes));
}
