/* Declares the operands of max_pool and runs it. */
#include "kernels/max_pool.h"

#include "kernels/launch.h"

static size_t input_items(const struct max_pool *pool)
{
    return pool->planes * pool->height * pool->width;
}

static size_t output_items(const struct max_pool *pool)
{
    return pool->planes * max_pool_output_height(pool) * max_pool_output_width(pool);
}

/* Every item of every window is compared; the backward pass costs about the same. */
static uint64_t flops(const struct max_pool *pool)
{
    return (uint64_t)output_items(pool) * pool->window * pool->window;
}

capu_status max_pool_forward(capu_context *context, const struct max_pool *pool)
{
    capu_status status = max_pool_check(pool);

    if (status != CAPU_OK) {
        return status;
    }
    return LAUNCH(context, max_pool_forward, pool, flops(pool),
                  LAUNCH_READ(pool->input, input_items(pool) * element_bytes(pool->element)),
                  LAUNCH_WRITE(pool->output, output_items(pool) * element_bytes(pool->element)),
                  LAUNCH_WRITE(pool->places, output_items(pool)));
}

capu_status max_pool_backward(capu_context *context, const struct max_pool *pool)
{
    capu_status status = max_pool_check(pool);

    if (status != CAPU_OK) {
        return status;
    }
    return LAUNCH(
        context, max_pool_backward, pool, flops(pool),
        LAUNCH_READ(pool->output_gradient, output_items(pool) * element_bytes(pool->element)),
        LAUNCH_READ(pool->places, output_items(pool)),
        LAUNCH_WRITE(pool->input_gradient, input_items(pool) * element_bytes(pool->element)));
}
