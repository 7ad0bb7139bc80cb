/* average_pool on the host. A tile is a number of whole planes. */
#include "kernels/average_pool.h"

#include "kernels/copies.h"
#include "kernels/parallel.h"
#include "kernels/reduce.h"

/* Which shapes average_pool accepts, the same on every device. */

/* Items are counted in 32 bits, including the step of a warp past the end. */
#define COUNT_LIMIT (UINT32_MAX - 32u)

capu_status average_pool_check(const struct average_pool *pool)
{
    if (pool->planes == 0 || pool->plane == 0) {
        return CAPU_INVALID;
    }
    return pool->planes <= COUNT_LIMIT / pool->plane ? CAPU_OK : CAPU_TOO_LARGE;
}

#define TILE_PLANES ((size_t)64)

static void forward_tile(const void *arguments, size_t tile)
{
    const struct average_pool *pool = arguments;
    struct parallel_range planes = parallel_items(tile, TILE_PLANES, pool->planes);
    const float *input = pool->input;
    float *output = pool->output;

    for (size_t i = planes.first; i < planes.end; i++) {
        output[i] = reduce_sum(input + i * pool->plane, pool->plane) / (float)pool->plane;
    }
}

static void backward_tile(const void *arguments, size_t tile)
{
    const struct average_pool *pool = arguments;
    struct parallel_range planes = parallel_items(tile, TILE_PLANES, pool->planes);
    const float *output_gradient = pool->output_gradient;

    for (size_t i = planes.first; i < planes.end; i++) {
        float *gradient = (float *)pool->input_gradient + i * pool->plane;
        float share = output_gradient[i] / (float)pool->plane;

        for (size_t k = 0; k < pool->plane; k++) {
            gradient[k] = share;
        }
    }
}

capu_status average_pool_forward_host(capu_stream stream, const void *arguments)
{
    struct average_pool pool = *(const struct average_pool *)arguments;
    struct copies copies = {.element = pool.element};
    capu_status status = average_pool_check(&pool);

    (void)stream;
    if (status != CAPU_OK) {
        return status;
    }
    pool.input = copies_read(&copies, pool.input, pool.planes * pool.plane);
    pool.output = copies_write(&copies, pool.output, pool.planes);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(pool.planes, TILE_PLANES), forward_tile, &pool);
    }
    return copies_finish(&copies);
}

capu_status average_pool_backward_host(capu_stream stream, const void *arguments)
{
    struct average_pool pool = *(const struct average_pool *)arguments;
    struct copies copies = {.element = pool.element};
    capu_status status = average_pool_check(&pool);

    (void)stream;
    if (status != CAPU_OK) {
        return status;
    }
    pool.output_gradient = copies_read(&copies, pool.output_gradient, pool.planes);
    pool.input_gradient = copies_write(&copies, pool.input_gradient, pool.planes * pool.plane);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(pool.planes, TILE_PLANES), backward_tile, &pool);
    }
    return copies_finish(&copies);
}
