/* residual on the host. */
#include "kernels/residual.h"

#include "kernels/copies.h"
#include "kernels/parallel.h"

static void forward_tile(const void *arguments, size_t tile)
{
    const struct residual *residual = arguments;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, residual->count);
    const float *input = residual->input;
    const float *branch = residual->branch;
    float *restrict output = residual->output;

    for (size_t i = items.first; i < items.end; i++) {
        output[i] = input[i] + branch[i];
    }
}

static void add_items(float *restrict to, const float *restrict from, struct parallel_range items)
{
    for (size_t i = items.first; i < items.end; i++) {
        to[i] += from[i];
    }
}

static void backward_tile(const void *arguments, size_t tile)
{
    const struct residual *residual = arguments;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, residual->count);

    add_items(residual->input_gradient, residual->output_gradient, items);
    if (residual->branch_gradient != NULL) {
        add_items(residual->branch_gradient, residual->output_gradient, items);
    }
}

capu_status residual_forward_host(capu_stream stream, const void *arguments)
{
    struct residual residual = *(const struct residual *)arguments;
    struct copies copies = {.element = residual.element};

    (void)stream;
    residual.input = copies_read(&copies, residual.input, residual.count);
    residual.branch = copies_read(&copies, residual.branch, residual.count);
    residual.output = copies_write(&copies, residual.output, residual.count);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(residual.count, PARALLEL_TILE_ITEMS), forward_tile, &residual);
    }
    return copies_finish(&copies);
}

capu_status residual_backward_host(capu_stream stream, const void *arguments)
{
    struct residual residual = *(const struct residual *)arguments;
    struct copies copies = {.element = residual.element};

    (void)stream;
    residual.output_gradient = copies_read(&copies, residual.output_gradient, residual.count);
    residual.input_gradient = copies_update(&copies, residual.input_gradient, residual.count);
    residual.branch_gradient = copies_update(&copies, residual.branch_gradient, residual.count);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(residual.count, PARALLEL_TILE_ITEMS), backward_tile, &residual);
    }
    return copies_finish(&copies);
}
