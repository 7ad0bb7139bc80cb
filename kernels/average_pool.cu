/* average_pool on cuda: one warp per plane forward, one thread per item backward. */
#include "kernels/average_pool.h"

#include "kernels/grid.cuh"

template <typename Element> static __global__ void forward(const struct average_pool pool)
{
    const Element *input = (const Element *)pool.input;
    Element *output = (Element *)pool.output;

    for (size_t row = grid_first_row(); row < pool.planes; row += grid_row_stride()) {
        const Element *plane = input + row * pool.plane;
        float sum = 0.0f;

        for (uint32_t i = grid_lane(); i < pool.plane; i += GRID_WARP) {
            sum += plane[i];
        }
        sum = grid_warp_sum(sum);
        if (grid_lane() == 0) {
            output[row] = sum / (float)pool.plane;
        }
    }
}

template <typename Element> static __global__ void backward(const struct average_pool pool)
{
    const Element *output_gradient = (const Element *)pool.output_gradient;
    Element *input_gradient = (Element *)pool.input_gradient;
    size_t count = pool.planes * pool.plane;

    for (size_t i = grid_first(); i < count; i += grid_stride()) {
        input_gradient[i] = output_gradient[(uint32_t)i / pool.plane] / (float)pool.plane;
    }
}

capu_status average_pool_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct average_pool *pool = (const struct average_pool *)arguments;
    capu_status status = average_pool_check(pool);

    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH_FOR(pool->element, forward, grid_blocks(pool->planes, GRID_WARPS), GRID_THREADS,
                    stream, *pool);
    return grid_status();
}

capu_status average_pool_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct average_pool *pool = (const struct average_pool *)arguments;
    capu_status status = average_pool_check(pool);

    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH_FOR(pool->element, backward, grid_blocks(pool->planes * pool->plane, GRID_THREADS),
                    GRID_THREADS, stream, *pool);
    return grid_status();
}
