/* gelu on the host. */
#include "kernels/gelu.h"

#include "kernels/copies.h"
#include "kernels/exponential.h"
#include "kernels/parallel.h"

/* sqrt(2 / pi) */
#define ROOT 0.797884561f
#define CUBIC 0.044715f

static void forward_tile(const void *arguments, size_t tile)
{
    const struct gelu *gelu = arguments;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, gelu->count);
    const float *restrict input = gelu->input;
    float *restrict output = gelu->output;

    for (size_t i = items.first; i < items.end; i++) {
        float x = input[i];

        output[i] = 0.5f * x * (1.0f + exponential_tanh(ROOT * (x + CUBIC * x * x * x)));
    }
}

static void backward_tile(const void *arguments, size_t tile)
{
    const struct gelu *gelu = arguments;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, gelu->count);
    const float *restrict input = gelu->input;
    float *restrict gradient = gelu->gradient;

    for (size_t i = items.first; i < items.end; i++) {
        float x = input[i];
        float tangent = exponential_tanh(ROOT * (x + CUBIC * x * x * x));
        float slope = (1.0f - tangent * tangent) * ROOT * (1.0f + 3.0f * CUBIC * x * x);

        gradient[i] *= 0.5f * (1.0f + tangent) + 0.5f * x * slope;
    }
}

capu_status gelu_forward_host(capu_stream stream, const void *arguments)
{
    struct gelu gelu = *(const struct gelu *)arguments;
    struct copies copies = {.element = gelu.element};

    (void)stream;
    gelu.input = copies_read(&copies, gelu.input, gelu.count);
    gelu.output = copies_write(&copies, gelu.output, gelu.count);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(gelu.count, PARALLEL_TILE_ITEMS), forward_tile, &gelu);
    }
    return copies_finish(&copies);
}

capu_status gelu_backward_host(capu_stream stream, const void *arguments)
{
    struct gelu gelu = *(const struct gelu *)arguments;
    struct copies copies = {.element = gelu.element};

    (void)stream;
    gelu.input = copies_read(&copies, gelu.input, gelu.count);
    gelu.gradient = copies_update(&copies, gelu.gradient, gelu.count);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(gelu.count, PARALLEL_TILE_ITEMS), backward_tile, &gelu);
    }
    return copies_finish(&copies);
}
