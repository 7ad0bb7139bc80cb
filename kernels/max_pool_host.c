/* max_pool on the host. A tile is a number of whole planes. Where windows overlap, gradients are
 * added in order. */
#include "kernels/max_pool.h"

#include "kernels/copies.h"
#include "kernels/parallel.h"

#include <stdbool.h>
#include <string.h>

/* Which shapes max_pool accepts, the same on every device. */

/* A place within a window is stored in a byte. */
#define WINDOW_LIMIT 16u

capu_status max_pool_check(const struct max_pool *pool)
{
    uint64_t height = (uint64_t)pool->height + 2 * (uint64_t)pool->padding;
    uint64_t width = (uint64_t)pool->width + 2 * (uint64_t)pool->padding;

    if (pool->planes == 0 || pool->height == 0 || pool->width == 0 || pool->window == 0 ||
        pool->window > WINDOW_LIMIT || pool->padding >= pool->window || height < pool->window ||
        width < pool->window) {
        return CAPU_INVALID;
    }
    /* Counted with the padding, which bounds the items of the output too. */
    if (height > UINT32_MAX || width > UINT32_MAX || pool->planes > UINT32_MAX / height / width) {
        return CAPU_TOO_LARGE;
    }
    return CAPU_OK;
}

#define TILE_PLANES ((size_t)16)

/* The part of a window that lies on the image, in one direction, relative to the start of the
 * window. */
static struct parallel_range part_of(size_t index, uint32_t side, const struct max_pool *pool)
{
    size_t start = index * max_pool_stride(pool);
    size_t rest = side + pool->padding - start;

    return (struct parallel_range){
        .first = start < pool->padding ? pool->padding - start : 0,
        .end = rest < pool->window ? rest : pool->window,
    };
}

/* The first of the largest items; with NaNs in the window, the last NaN. */
static uint8_t find_largest(const struct max_pool *pool, const float *plane, size_t row,
                            size_t column, float *largest)
{
    struct parallel_range down = part_of(row, pool->height, pool);
    struct parallel_range across = part_of(column, pool->width, pool);
    size_t top = row * max_pool_stride(pool) - pool->padding;
    size_t left = column * max_pool_stride(pool) - pool->padding;
    float most = plane[(top + down.first) * pool->width + left + across.first];
    size_t place = down.first * pool->window + across.first;

    for (size_t y = down.first; y < down.end; y++) {
        for (size_t x = across.first; x < across.end; x++) {
            float value = plane[(top + y) * pool->width + left + x];

            if (value > most || value != value) {
                most = value;
                place = y * pool->window + x;
            }
        }
    }
    *largest = most;
    return (uint8_t)place;
}

/* The usual case, a row of 2 x 2 windows side by side, without branches: a mispredicted one would
   cost more than all other work. It chooses as find_largest does. */
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
    size_t plane_items = (size_t)pool->height * pool->width;
    size_t rows = max_pool_output_height(pool);
    size_t columns = max_pool_output_width(pool);
    float *output = pool->output;
    bool is_usual = pool->window == 2 && max_pool_stride(pool) == 2 && pool->padding == 0;

    for (size_t plane = planes.first; plane < planes.end; plane++) {
        const float *input = (const float *)pool->input + plane * plane_items;
        size_t to = plane * rows * columns;

        for (size_t y = 0; y < rows; y++) {
            if (is_usual) {
                forward_row_of_two(input + y * 2 * pool->width, pool->width, columns, output + to,
                                   pool->places + to);
                to += columns;
                continue;
            }
            for (size_t x = 0; x < columns; x++, to++) {
                pool->places[to] = find_largest(pool, input, y, x, &output[to]);
            }
        }
    }
}

static void backward_tile(const void *arguments, size_t tile)
{
    const struct max_pool *pool = arguments;
    struct parallel_range planes = parallel_items(tile, TILE_PLANES, pool->planes);
    size_t plane_items = (size_t)pool->height * pool->width;
    size_t stride = max_pool_stride(pool);
    size_t rows = max_pool_output_height(pool);
    size_t columns = max_pool_output_width(pool);
    const float *output_gradient = pool->output_gradient;

    for (size_t plane = planes.first; plane < planes.end; plane++) {
        float *gradient = (float *)pool->input_gradient + plane * plane_items;
        size_t from = plane * rows * columns;

        memset(gradient, 0, plane_items * sizeof(float));
        for (size_t row = 0; row < rows; row++) {
            for (size_t column = 0; column < columns; column++, from++) {
                /* In strict mode the place may be poison. The remainder stays inside the window; a
                   place before the image wraps around and fails the comparison below. */
                uint32_t place = pool->places[from] % (pool->window * pool->window);
                size_t y = row * stride + place / pool->window - pool->padding;
                size_t x = column * stride + place % pool->window - pool->padding;

                if (y < pool->height && x < pool->width) {
                    gradient[y * pool->width + x] += output_gradient[from];
                }
            }
        }
    }
}

static size_t input_items(const struct max_pool *pool)
{
    return pool->planes * pool->height * pool->width;
}

static size_t output_items(const struct max_pool *pool)
{
    return pool->planes * max_pool_output_height(pool) * max_pool_output_width(pool);
}

capu_status max_pool_forward_host(capu_stream stream, const void *arguments)
{
    struct max_pool pool = *(const struct max_pool *)arguments;
    struct copies copies = {.element = pool.element};
    capu_status status = max_pool_check(&pool);

    (void)stream;
    if (status != CAPU_OK) {
        return status;
    }
    pool.input = copies_read(&copies, pool.input, input_items(&pool));
    pool.output = copies_write(&copies, pool.output, output_items(&pool));
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(pool.planes, TILE_PLANES), forward_tile, &pool);
    }
    return copies_finish(&copies);
}

capu_status max_pool_backward_host(capu_stream stream, const void *arguments)
{
    struct max_pool pool = *(const struct max_pool *)arguments;
    struct copies copies = {.element = pool.element};
    capu_status status = max_pool_check(&pool);

    (void)stream;
    if (status != CAPU_OK) {
        return status;
    }
    pool.output_gradient = copies_read(&copies, pool.output_gradient, output_items(&pool));
    pool.input_gradient = copies_write(&copies, pool.input_gradient, input_items(&pool));
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(pool.planes, TILE_PLANES), backward_tile, &pool);
    }
    return copies_finish(&copies);
}
