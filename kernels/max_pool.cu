/*
 * max_pool on cuda. Backward a thread has an input item and looks whether its window chose it, so
 * that each is written once and nothing has to be cleared before. Items are found by divisions,
 * which are cheap in 32 bits.
 */
#include "kernels/max_pool.h"

#include "kernels/grid.cuh"

static __global__ void forward(const struct max_pool pool)
{
    uint32_t rows = pool.height / pool.window;
    uint32_t columns = pool.width / pool.window;
    size_t count = pool.planes * rows * columns;

    for (size_t i = grid_first(); i < count; i += grid_stride()) {
        uint32_t x = (uint32_t)i % columns;
        uint32_t y = (uint32_t)i / columns % rows;
        size_t plane = (uint32_t)i / columns / rows;
        const float *corner =
            pool.input + (plane * pool.height + y * pool.window) * pool.width + x * pool.window;
        float most = corner[0];
        unsigned place = 0;

        /* The first of the largest, or the last NaN. */
        for (unsigned k = 0; k < pool.window * pool.window; k++) {
            float value = corner[(size_t)(k / pool.window) * pool.width + k % pool.window];

            if (value > most || value != value) {
                most = value;
                place = k;
            }
        }
        pool.output[i] = most;
        pool.places[i] = (uint8_t)place;
    }
}

static __global__ void backward(const struct max_pool pool)
{
    uint32_t rows = pool.height / pool.window;
    uint32_t columns = pool.width / pool.window;
    size_t count = pool.planes * pool.height * pool.width;

    for (size_t i = grid_first(); i < count; i += grid_stride()) {
        uint32_t x = (uint32_t)i % pool.width;
        uint32_t y = (uint32_t)i / pool.width % pool.height;
        size_t plane = (uint32_t)i / pool.width / pool.height;
        float gradient = 0.0f;

        if (x / pool.window < columns && y / pool.window < rows) {
            size_t from = (plane * rows + y / pool.window) * columns + x / pool.window;
            /* As on the host: poison is taken for some place inside the window. */
            unsigned place = pool.places[from] % (pool.window * pool.window);

            if (place == y % pool.window * pool.window + x % pool.window) {
                gradient = pool.output_gradient[from];
            }
        }
        pool.input_gradient[i] = gradient;
    }
}

capu_status max_pool_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct max_pool *pool = (const struct max_pool *)arguments;
    capu_status status = max_pool_check(pool);
    size_t count;

    if (status != CAPU_OK) {
        return status;
    }
    count = pool->planes * (pool->height / pool->window) * (pool->width / pool->window);
    GRID_LAUNCH(forward, grid_blocks(count, GRID_THREADS), GRID_THREADS, stream, *pool);
    return grid_status();
}

capu_status max_pool_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct max_pool *pool = (const struct max_pool *)arguments;
    capu_status status = max_pool_check(pool);
    size_t count = pool->planes * pool->height * pool->width;

    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH(backward, grid_blocks(count, GRID_THREADS), GRID_THREADS, stream, *pool);
    return grid_status();
}
