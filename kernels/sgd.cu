/* sgd on cuda. */
#include "kernels/sgd.h"

#include "kernels/grid.cuh"

static __global__ void update(const struct sgd sgd)
{
    for (size_t i = grid_first(); i < sgd.count; i += grid_stride()) {
        float parameter = sgd.parameter[i];
        float velocity = sgd.momentum * sgd.velocity[i] + sgd.gradient[i] + sgd.decay * parameter;

        sgd.velocity[i] = velocity;
        sgd.parameter[i] = parameter - sgd.rate * velocity;
    }
}

capu_status sgd_update_cuda(capu_stream stream, const void *arguments)
{
    const struct sgd *sgd = (const struct sgd *)arguments;

    GRID_LAUNCH(update, grid_blocks(sgd->count, GRID_THREADS), GRID_THREADS, stream, *sgd);
    return grid_status();
}
