/*
 * max_pool on cuda. Backward, a thread has an input item and checks which windows chose it, in the
 * order of the host. So every item is written once, by one thread, and nothing has to be cleared
 * before. Divisions find the items, which is cheap in 32 bits. An unsigned coordinate in the
 * padding wraps around and is past the end of the image.
 */
#include "kernels/max_pool.h"

#include "kernels/grid.cuh"

/* Not a place of any window. */
#define NOWHERE 256u

template <typename Element>
static __global__ void forward(const struct max_pool pool, uint32_t rows, uint32_t columns)
{
    const Element *input = (const Element *)pool.input;
    Element *output = (Element *)pool.output;
    size_t count = pool.planes * rows * columns;

    for (size_t i = grid_first(); i < count; i += grid_stride()) {
        uint32_t left = (uint32_t)i % columns * pool.stride - pool.padding;
        uint32_t top = (uint32_t)i / columns % rows * pool.stride - pool.padding;
        size_t plane = (uint32_t)i / columns / rows;
        float most = 0.0f;
        unsigned place = NOWHERE;

        /* The first of the largest items; with NaNs in the window, the last NaN. */
        for (unsigned k = 0; k < pool.window * pool.window; k++) {
            uint32_t y = top + k / pool.window;
            uint32_t x = left + k % pool.window;

            if (y < pool.height && x < pool.width) {
                float value = input[(plane * pool.height + y) * pool.width + x];

                if (place == NOWHERE || value > most || value != value) {
                    most = value;
                    place = k;
                }
            }
        }
        output[i] = most;
        pool.places[i] = (uint8_t)place;
    }
}

/* The first window that contains item `at`, counted including the padding before it. */
static __device__ inline uint32_t first_with(uint32_t at, const struct max_pool &pool)
{
    return at < pool.window ? 0 : (at - pool.window) / pool.stride + 1;
}

template <typename Element>
static __global__ void backward(const struct max_pool pool, uint32_t rows, uint32_t columns)
{
    const Element *output_gradient = (const Element *)pool.output_gradient;
    Element *input_gradient = (Element *)pool.input_gradient;
    size_t count = pool.planes * pool.height * pool.width;

    for (size_t i = grid_first(); i < count; i += grid_stride()) {
        uint32_t x = (uint32_t)i % pool.width + pool.padding;
        uint32_t y = (uint32_t)i / pool.width % pool.height + pool.padding;
        size_t plane = (uint32_t)i / pool.width / pool.height;
        float gradient = 0.0f;

        for (uint32_t row = first_with(y, pool); row < rows && row * pool.stride <= y; row++) {
            for (uint32_t column = first_with(x, pool);
                 column < columns && column * pool.stride <= x; column++) {
                size_t from = (plane * rows + row) * columns + column;
                /* As on the host: poison is treated as some place inside the window. */
                unsigned place = pool.places[from] % (pool.window * pool.window);

                if (place == (y - row * pool.stride) * pool.window + (x - column * pool.stride)) {
                    gradient += output_gradient[from];
                }
            }
        }
        input_gradient[i] = gradient;
    }
}

/* Kernels receive the effective stride and the sides of the output. */
#define LAUNCH(kernel, pool, count, stream)                                                    \
    GRID_LAUNCH_FOR((pool)->element, kernel, grid_blocks((count), GRID_THREADS), GRID_THREADS, \
                    (stream), with_stride(pool), max_pool_output_height(pool),                 \
                    max_pool_output_width(pool))

static struct max_pool with_stride(const struct max_pool *pool)
{
    struct max_pool with = *pool;

    with.stride = max_pool_stride(pool);
    return with;
}

capu_status max_pool_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct max_pool *pool = (const struct max_pool *)arguments;
    capu_status status = max_pool_check(pool);

    if (status != CAPU_OK) {
        return status;
    }
    LAUNCH(forward, pool, pool->planes * max_pool_output_height(pool) * max_pool_output_width(pool),
           stream);
    return grid_status();
}

capu_status max_pool_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct max_pool *pool = (const struct max_pool *)arguments;
    capu_status status = max_pool_check(pool);

    if (status != CAPU_OK) {
        return status;
    }
    LAUNCH(backward, pool, pool->planes * pool->height * pool->width, stream);
    return grid_status();
}
