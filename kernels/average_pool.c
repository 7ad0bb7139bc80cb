/* Declares the operands of average_pool and runs it. */
#include "kernels/average_pool.h"

#include "kernels/launch.h"

capu_status average_pool_forward(capu_context *context, const struct average_pool *pool)
{
    capu_status status = average_pool_check(pool);
    size_t bytes;

    if (status != CAPU_OK) {
        return status;
    }
    bytes = pool->planes * element_bytes(pool->element);
    return LAUNCH(context, average_pool_forward, pool, pool->planes * pool->plane,
                  LAUNCH_READ(pool->input, bytes * pool->plane), LAUNCH_WRITE(pool->output, bytes));
}

capu_status average_pool_backward(capu_context *context, const struct average_pool *pool)
{
    capu_status status = average_pool_check(pool);
    size_t bytes;

    if (status != CAPU_OK) {
        return status;
    }
    bytes = pool->planes * element_bytes(pool->element);
    return LAUNCH(context, average_pool_backward, pool, pool->planes,
                  LAUNCH_READ(pool->output_gradient, bytes),
                  LAUNCH_WRITE(pool->input_gradient, bytes * pool->plane));
}
