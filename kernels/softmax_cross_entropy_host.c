/* softmax_cross_entropy on the host. */
#include "kernels/softmax_cross_entropy.h"

#include "kernels/copies.h"
#include "kernels/exponential.h"
#include "kernels/parallel.h"
#include "kernels/reduce.h"

#include <math.h>

#define TILE_ROWS ((size_t)64)

static float largest(const float *x, size_t count)
{
    float most = x[0];

    for (size_t i = 1; i < count; i++) {
        most = x[i] > most ? x[i] : most;
    }
    return most;
}

static void forward_tile(const void *argument_block, size_t tile)
{
    const struct softmax_cross_entropy *arguments = argument_block;
    struct parallel_range rows = parallel_items(tile, TILE_ROWS, arguments->rows);
    size_t classes = arguments->classes;

    for (size_t row = rows.first; row < rows.end; row++) {
        const float *restrict logits = (const float *)arguments->logits + row * classes;
        float *restrict probabilities = (float *)arguments->probabilities + row * classes;
        float most = largest(logits, classes);
        float sum;
        float factor;

        for (size_t i = 0; i < classes; i++) {
            probabilities[i] = exponential(logits[i] - most);
        }
        sum = reduce_sum(probabilities, classes);
        factor = 1.0f / sum;
        for (size_t i = 0; i < classes; i++) {
            probabilities[i] *= factor;
        }
        /* From the logits and not from the probability, which may have become 0. */
        arguments->losses[row] = logf(sum) - (logits[arguments->labels[row]] - most);
    }
}

static void backward_tile(const void *argument_block, size_t tile)
{
    const struct softmax_cross_entropy *arguments = argument_block;
    struct parallel_range rows = parallel_items(tile, TILE_ROWS, arguments->rows);
    size_t classes = arguments->classes;

    for (size_t row = rows.first; row < rows.end; row++) {
        const float *restrict probabilities =
            (const float *)arguments->probabilities + row * classes;
        float *restrict gradient = (float *)arguments->gradient + row * classes;

        for (size_t i = 0; i < classes; i++) {
            gradient[i] = probabilities[i] * arguments->scale;
        }
        gradient[arguments->labels[row]] -= arguments->scale;
    }
}

static capu_status check_labels(const struct softmax_cross_entropy *arguments)
{
    for (size_t row = 0; row < arguments->rows; row++) {
        if (arguments->labels[row] < 0 || (uint32_t)arguments->labels[row] >= arguments->classes) {
            return CAPU_INVALID;
        }
    }
    return CAPU_OK;
}

static void forward(const struct softmax_cross_entropy *arguments)
{
    double sum = 0.0;

    parallel_run(parallel_tiles(arguments->rows, TILE_ROWS), forward_tile, arguments);
    for (size_t row = 0; row < arguments->rows; row++) {
        sum += arguments->losses[row];
    }
    *arguments->mean = (float)(sum / arguments->rows);
}

capu_status softmax_cross_entropy_forward_host(capu_stream stream, const void *argument_block)
{
    struct softmax_cross_entropy arguments = *(const struct softmax_cross_entropy *)argument_block;
    struct copies copies = {.element = arguments.element, .status = check_labels(&arguments)};
    size_t items = (size_t)arguments.rows * arguments.classes;

    (void)stream;
    arguments.logits = copies_read(&copies, arguments.logits, items);
    arguments.probabilities = copies_write(&copies, arguments.probabilities, items);
    if (copies.status == CAPU_OK) {
        forward(&arguments);
    }
    return copies_finish(&copies);
}

capu_status softmax_cross_entropy_backward_host(capu_stream stream, const void *argument_block)
{
    struct softmax_cross_entropy arguments = *(const struct softmax_cross_entropy *)argument_block;
    struct copies copies = {.element = arguments.element, .status = check_labels(&arguments)};
    size_t items = (size_t)arguments.rows * arguments.classes;

    (void)stream;
    arguments.probabilities = (float *)copies_read(&copies, arguments.probabilities, items);
    arguments.gradient = copies_write(&copies, arguments.gradient, items);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(arguments.rows, TILE_ROWS), backward_tile, &arguments);
    }
    return copies_finish(&copies);
}
