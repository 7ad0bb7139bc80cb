/* Operands of average_pool. */
#include "kernels/average_pool.h"

#include "kernels/launch.h"

capu_status average_pool_forward(capu_context *context, const struct average_pool *pool)
{
    capu_status status = average_pool_check(pool);

    if (status != CAPU_OK) {
        return status;
    }
    return LAUNCH(context, average_pool_forward, pool, pool->planes * pool->plane,
                  LAUNCH_READ(pool->input, pool->planes * pool->plane * sizeof(float)),
                  LAUNCH_WRITE(pool->output, pool->planes * sizeof(float)));
}

capu_status average_pool_backward(capu_context *context, const struct average_pool *pool)
{
    capu_status status = average_pool_check(pool);

    if (status != CAPU_OK) {
        return status;
    }
    return LAUNCH(context, average_pool_backward, pool, pool->planes,
                  LAUNCH_READ(pool->output_gradient, pool->planes * sizeof(float)),
                  LAUNCH_WRITE(pool->input_gradient, pool->planes * pool->plane * sizeof(float)));
}
