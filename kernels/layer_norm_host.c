/* layer_norm on the host. A tile is a number of rows; for the gradients of the parameters, which
 * are sums over rows, it is a number of channels. */
#include "kernels/layer_norm.h"

#include "kernels/copies.h"
#include "kernels/parallel.h"
#include "kernels/reduce.h"

#include <math.h>

#define TILE_ROWS ((size_t)32)
#define TILE_CHANNELS ((size_t)64)
#define EPSILON 1e-5f

static void forward_tile(const void *arguments, size_t tile)
{
    const struct layer_norm *norm = arguments;
    struct parallel_range rows = parallel_items(tile, TILE_ROWS, norm->rows);
    const float *scale = norm->scale;
    const float *shift = norm->shift;
    size_t channels = norm->channels;

    for (size_t row = rows.first; row < rows.end; row++) {
        const float *restrict input = (const float *)norm->input + row * channels;
        float *restrict output = (float *)norm->output + row * channels;
        float mean = reduce_sum(input, channels) / (float)channels;
        float variance = reduce_product(input, mean, input, mean, channels) / (float)channels;
        float rstd = 1.0f / sqrtf(variance + EPSILON);

        for (size_t i = 0; i < channels; i++) {
            output[i] = (input[i] - mean) * rstd * scale[i] + shift[i];
        }
        norm->mean[row] = mean;
        norm->rstd[row] = rstd;
    }
}

static void input_gradient_row(const struct layer_norm *norm, size_t row)
{
    size_t channels = norm->channels;
    const float *gradient = (const float *)norm->output_gradient + row * channels;
    const float *input = (const float *)norm->input + row * channels;
    float *restrict to = (float *)norm->input_gradient + row * channels;
    const float *scale = norm->scale;
    float mean = norm->mean[row];
    float rstd = norm->rstd[row];
    double sum = 0.0;
    double product = 0.0;
    float mean_sum;
    float mean_product;

    for (size_t i = 0; i < channels; i++) {
        float scaled = gradient[i] * scale[i];

        sum += scaled;
        product += scaled * ((input[i] - mean) * rstd);
    }
    mean_sum = (float)(sum / (double)channels);
    mean_product = (float)(product / (double)channels);
    for (size_t i = 0; i < channels; i++) {
        float normal = (input[i] - mean) * rstd;

        to[i] += (gradient[i] * scale[i] - mean_sum - normal * mean_product) * rstd;
    }
}

static void input_gradient_tile(const void *arguments, size_t tile)
{
    const struct layer_norm *norm = arguments;
    struct parallel_range rows = parallel_items(tile, TILE_ROWS, norm->rows);

    for (size_t row = rows.first; row < rows.end; row++) {
        input_gradient_row(norm, row);
    }
}

static void parameter_gradient_tile(const void *arguments, size_t tile)
{
    const struct layer_norm *norm = arguments;
    struct parallel_range range = parallel_items(tile, TILE_CHANNELS, norm->channels);
    size_t count = range.end - range.first;
    float scales[TILE_CHANNELS] = {0};
    float shifts[TILE_CHANNELS] = {0};

    for (size_t row = 0; row < norm->rows; row++) {
        size_t first = row * norm->channels + range.first;
        const float *gradient = (const float *)norm->output_gradient + first;
        const float *input = (const float *)norm->input + first;
        float mean = norm->mean[row];
        float rstd = norm->rstd[row];

        for (size_t i = 0; i < count; i++) {
            scales[i] += gradient[i] * ((input[i] - mean) * rstd);
            shifts[i] += gradient[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        norm->scale_gradient[range.first + i] += scales[i];
        norm->shift_gradient[range.first + i] += shifts[i];
    }
}

capu_status layer_norm_forward_host(capu_stream stream, const void *arguments)
{
    struct layer_norm norm = *(const struct layer_norm *)arguments;
    struct copies copies = {.element = norm.element};
    size_t items = (size_t)norm.rows * norm.channels;

    (void)stream;
    norm.input = copies_read(&copies, norm.input, items);
    norm.scale = copies_read(&copies, norm.scale, norm.channels);
    norm.shift = copies_read(&copies, norm.shift, norm.channels);
    norm.output = copies_write(&copies, norm.output, items);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(norm.rows, TILE_ROWS), forward_tile, &norm);
    }
    return copies_finish(&copies);
}

capu_status layer_norm_backward_host(capu_stream stream, const void *arguments)
{
    struct layer_norm norm = *(const struct layer_norm *)arguments;
    struct copies copies = {.element = norm.element};
    size_t items = (size_t)norm.rows * norm.channels;

    (void)stream;
    norm.output_gradient = copies_read(&copies, norm.output_gradient, items);
    norm.input = copies_read(&copies, norm.input, items);
    norm.scale = copies_read(&copies, norm.scale, norm.channels);
    norm.input_gradient = copies_update(&copies, norm.input_gradient, items);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(norm.rows, TILE_ROWS), input_gradient_tile, &norm);
        parallel_run(parallel_tiles(norm.channels, TILE_CHANNELS), parameter_gradient_tile, &norm);
    }
    return copies_finish(&copies);
}
