/* residual on the host. */
#include "kernels/residual.h"

#include "kernels/parallel.h"

static void forward_tile(const void *arguments, size_t tile)
{
    const struct residual *residual = arguments;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, residual->count);
    float *restrict output = residual->output;

    for (size_t i = items.first; i < items.end; i++) {
        output[i] = residual->input[i] + residual->branch[i];
    }
}

static void add(float *restrict to, const float *restrict from, struct parallel_range items)
{
    for (size_t i = items.first; i < items.end; i++) {
        to[i] += from[i];
    }
}

static void backward_tile(const void *arguments, size_t tile)
{
    const struct residual *residual = arguments;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, residual->count);

    add(residual->input_gradient, residual->output_gradient, items);
    if (residual->branch_gradient != NULL) {
        add(residual->branch_gradient, residual->output_gradient, items);
    }
}

capu_status residual_forward_host(capu_stream stream, const void *arguments)
{
    const struct residual *residual = arguments;

    (void)stream;
    parallel_run(parallel_tiles(residual->count, PARALLEL_TILE_ITEMS), forward_tile, residual);
    return CAPU_OK;
}

capu_status residual_backward_host(capu_stream stream, const void *arguments)
{
    const struct residual *residual = arguments;

    (void)stream;
    parallel_run(parallel_tiles(residual->count, PARALLEL_TILE_ITEMS), backward_tile, residual);
    return CAPU_OK;
}
