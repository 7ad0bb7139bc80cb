/*
 * relu on the host, written so that a NaN stays a NaN. Strict mode fills memory without contents
 * with NaNs; an operation that turned them into zeros would hide a wrong declaration.
 */
#include "kernels/relu.h"

#include "kernels/copies.h"
#include "kernels/parallel.h"

static void forward_tile(const void *arguments, size_t tile)
{
    const struct relu *relu = arguments;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, relu->count);
    const float *restrict input = relu->input;
    float *restrict output = relu->output;

    for (size_t i = items.first; i < items.end; i++) {
        output[i] = input[i] < 0.0f ? 0.0f : input[i];
    }
}

static void backward_tile(const void *arguments, size_t tile)
{
    const struct relu *relu = arguments;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, relu->count);
    const float *restrict output = relu->output;
    float *restrict gradient = relu->gradient;

    for (size_t i = items.first; i < items.end; i++) {
        float passed = gradient[i];
        /* An output is never negative, so this is 0 or NaN. */
        float stopped = output[i] * 0.0f;
        gradient[i] = output[i] > 0.0f ? passed : stopped;
    }
}

capu_status relu_forward_host(capu_stream stream, const void *arguments)
{
    struct relu relu = *(const struct relu *)arguments;
    struct copies copies = {.element = relu.element};

    (void)stream;
    relu.input = copies_read(&copies, relu.input, relu.count);
    relu.output = copies_write(&copies, relu.output, relu.count);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(relu.count, PARALLEL_TILE_ITEMS), forward_tile, &relu);
    }
    return copies_finish(&copies);
}

capu_status relu_backward_host(capu_stream stream, const void *arguments)
{
    struct relu relu = *(const struct relu *)arguments;
    struct copies copies = {.element = relu.element};

    (void)stream;
    relu.output = (float *)copies_read(&copies, relu.output, relu.count);
    relu.gradient = copies_update(&copies, relu.gradient, relu.count);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(relu.count, PARALLEL_TILE_ITEMS), backward_tile, &relu);
    }
    return copies_finish(&copies);
}
