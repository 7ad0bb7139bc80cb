/* max_pool on the host: a tile is some whole planes. */
#include "kernels/max_pool.h"

#include "kernels/parallel.h"

#include <stdbool.h>
#include <string.h>

#define TILE_PLANES ((size_t)16)

/* What a place, a byte, can tell apart. */
#define WINDOW_LIMIT 16u

capu_status max_pool_check(const struct max_pool *pool)
{
    uint64_t plane = (uint64_t)pool->height * pool->width;

    if (pool->planes == 0 || pool->window == 0 || pool->window > WINDOW_LIMIT ||
        pool->height < pool->window || pool->width < pool->window) {
        return CAPU_INVALID;
    }
    return pool->planes <= UINT32_MAX / plane ? CAPU_OK : CAPU_TOO_LARGE;
}

/* The first of the largest, or the last NaN. */
static uint8_t find_largest(const float *corner, size_t stride, uint32_t window, float *largest)
{
    float most = corner[0];
    uint32_t place = 0;

    for (uint32_t y = 0; y < window; y++) {
        for (uint32_t x = 0; x < window; x++) {
            float value = corner[y * stride + x];

            if (value > most || value != value) {
                most = value;
                place = y * window + x;
            }
        }
    }
    *largest = most;
    return (uint8_t)place;
}

/* A row of windows of 2 x 2, the usual case, without a branch: a mispredicted one costs more than
   all the rest. The same choices as find_largest. */
static void forward_row_of_two(const float *top, size_t stride, size_t columns, float *output,
                               uint8_t *places)
{
    for (size_t x = 0; x < columns; x++) {
        float value[4] = {top[2 * x], top[2 * x + 1], top[stride + 2 * x], top[stride + 2 * x + 1]};
        float most = value[0];
        uint8_t place = 0;

        for (uint8_t i = 1; i < 4; i++) {
            bool is_more = (value[i] > most) | (value[i] != value[i]);

            most = is_more ? value[i] : most;
            place = is_more ? i : place;
        }
        output[x] = most;
        places[x] = place;
    }
}

static void forward_tile(const void *arguments, size_t tile)
{
    const struct max_pool *pool = arguments;
    struct parallel_range planes = parallel_items(tile, TILE_PLANES, pool->planes);
    size_t rows = pool->height / pool->window;
    size_t columns = pool->width / pool->window;

    for (size_t plane = planes.first; plane < planes.end; plane++) {
        const float *input = pool->input + plane * pool->height * pool->width;
        size_t to = plane * rows * columns;

        for (size_t y = 0; y < rows; y++) {
            const float *row = input + y * pool->window * pool->width;

            if (pool->window == 2) {
                forward_row_of_two(row, pool->width, columns, pool->output + to, pool->places + to);
                to += columns;
                continue;
            }
            for (size_t x = 0; x < columns; x++, to++) {
                pool->places[to] = find_largest(row + x * pool->window, pool->width, pool->window,
                                                &pool->output[to]);
            }
        }
    }
}

static void backward_tile(const void *arguments, size_t tile)
{
    const struct max_pool *pool = arguments;
    struct parallel_range planes = parallel_items(tile, TILE_PLANES, pool->planes);
    size_t plane_items = (size_t)pool->height * pool->width;
    size_t rows = pool->height / pool->window;
    size_t columns = pool->width / pool->window;

    for (size_t plane = planes.first; plane < planes.end; plane++) {
        float *gradient = pool->input_gradient + plane * plane_items;
        size_t from = plane * rows * columns;

        memset(gradient, 0, plane_items * sizeof(float));
        for (size_t y = 0; y < rows; y++) {
            float *row = gradient + y * pool->window * pool->width;

            for (size_t x = 0; x < columns; x++, from++) {
                /* Strict mode may hand over poison as a place: stay inside the window. */
                uint32_t place = pool->places[from] % (pool->window * pool->window);
                float *corner = row + x * pool->window;

                corner[place / pool->window * pool->width + place % pool->window] =
                    pool->output_gradient[from];
            }
        }
    }
}

capu_status max_pool_forward_host(capu_stream stream, const void *arguments)
{
    const struct max_pool *pool = arguments;
    capu_status status = max_pool_check(pool);

    (void)stream;
    if (status != CAPU_OK) {
        return status;
    }
    parallel_run(parallel_tiles(pool->planes, TILE_PLANES), forward_tile, pool);
    return CAPU_OK;
}

capu_status max_pool_backward_host(capu_stream stream, const void *arguments)
{
    const struct max_pool *pool = arguments;
    capu_status status = max_pool_check(pool);

    (void)stream;
    if (status != CAPU_OK) {
        return status;
    }
    parallel_run(parallel_tiles(pool->planes, TILE_PLANES), backward_tile, pool);
    return CAPU_OK;
}
