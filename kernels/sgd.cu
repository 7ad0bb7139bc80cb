/* sgd on cuda. */
#include "kernels/sgd.h"

#include "kernels/grid.cuh"

struct item {
    float parameter;
    float velocity;
    float gradient;
};

static __global__ void update(const struct sgd sgd)
{
    grid_each(
        sgd.count,
        [&](size_t i) {
            return item{sgd.parameter[i], sgd.velocity[i], sgd.gradient[i]};
        },
        [&](size_t i, const struct item &item) {
            float velocity =
                sgd.momentum * item.velocity + item.gradient + sgd.decay * item.parameter;
            float parameter = item.parameter - sgd.rate * velocity;

            sgd.velocity[i] = velocity;
            sgd.parameter[i] = parameter;
            if (sgd.working != NULL) {
                sgd.working[i] = element_round(parameter);
            }
        });
}

capu_status sgd_update_cuda(capu_stream stream, const void *arguments)
{
    const struct sgd *sgd = (const struct sgd *)arguments;

    GRID_LAUNCH(update, grid_blocks(sgd->count, GRID_EACH), GRID_THREADS, stream, *sgd);
    return grid_status();
}
