/*
 * batch_norm on the host. A tile is one channel, so every sum belongs to one thread. A plane is
 * summed in float lanes (reduce.h), the planes of the batch in double and in order: a channel has
 * too many items for a float sum to stay accurate.
 */
#include "kernels/batch_norm.h"

#include "kernels/copies.h"
#include "kernels/parallel.h"
#include "kernels/reduce.h"

#include <math.h>

static size_t plane_start(const struct batch_norm *norm, size_t image, size_t channel)
{
    return (image * norm->channels + channel) * norm->plane;
}

static const float *input_plane(const struct batch_norm *norm, size_t image, size_t channel)
{
    return (const float *)norm->input + plane_start(norm, image, channel);
}

/* output = factor input + offset over the whole channel. */
static void scale_channel(const struct batch_norm *norm, size_t channel, float factor, float offset)
{
    for (size_t image = 0; image < norm->batch; image++) {
        size_t start = plane_start(norm, image, channel);
        const float *restrict input = (const float *)norm->input + start;
        float *restrict output = (float *)norm->output + start;

        for (size_t i = 0; i < norm->plane; i++) {
            output[i] = input[i] * factor + offset;
        }
    }
}

static void normalise_channel(const struct batch_norm *norm, size_t channel, double mean,
                              double rstd)
{
    double factor = ((const float *)norm->scale)[channel] * rstd;
    float shift = ((const float *)norm->shift)[channel];

    scale_channel(norm, channel, (float)factor, (float)(shift - mean * factor));
}

/* Returns the variance of the batch; saves its mean and rstd. */
static double train_channel(const struct batch_norm *norm, size_t channel)
{
    double count = (double)norm->batch * norm->plane;
    double sum = 0.0;
    double squares = 0.0;
    double mean;
    double rstd;

    for (size_t image = 0; image < norm->batch; image++) {
        sum += reduce_sum(input_plane(norm, image, channel), norm->plane);
    }
    mean = sum / count;
    for (size_t image = 0; image < norm->batch; image++) {
        const float *plane = input_plane(norm, image, channel);

        squares += reduce_product(plane, (float)mean, plane, (float)mean, norm->plane);
    }
    rstd = 1.0 / sqrt(squares / count + norm->epsilon);
    norm->saved_mean[channel] = (float)mean;
    norm->saved_rstd[channel] = (float)rstd;
    normalise_channel(norm, channel, mean, rstd);
    return squares / count;
}

static void forward_tile(const void *arguments, size_t channel)
{
    const struct batch_norm *norm = arguments;
    float variance = (float)train_channel(norm, channel);
    float *running_mean = &norm->running_mean[channel];
    float *running_variance = &norm->running_variance[channel];

    *running_mean += norm->momentum * (norm->saved_mean[channel] - *running_mean);
    *running_variance += norm->momentum * (variance - *running_variance);
}

static void replay_tile(const void *arguments, size_t channel)
{
    train_channel(arguments, channel);
}

static void infer_tile(const void *arguments, size_t channel)
{
    const struct batch_norm *norm = arguments;
    double rstd = 1.0 / sqrt((double)norm->running_variance[channel] + norm->epsilon);

    normalise_channel(norm, channel, norm->running_mean[channel], rstd);
}

static void backward_tile(const void *arguments, size_t channel)
{
    const struct batch_norm *norm = arguments;
    float mean = norm->saved_mean[channel];
    float rstd = norm->saved_rstd[channel];
    float count = (float)norm->batch * (float)norm->plane;
    double sum = 0.0;
    double product = 0.0;
    float factor = ((const float *)norm->scale)[channel] * rstd;
    float slope;
    float offset;

    for (size_t image = 0; image < norm->batch; image++) {
        const float *input = input_plane(norm, image, channel);
        const float *gradient = (const float *)norm->gradient + plane_start(norm, image, channel);

        sum += reduce_sum(gradient, norm->plane);
        product += reduce_product(gradient, 0.0f, input, mean, norm->plane);
    }
    norm->shift_gradient[channel] = (float)sum;
    norm->scale_gradient[channel] = (float)product * rstd;
    /* factor (gradient - mean gradient - normalised input * mean product) */
    slope = (float)product * rstd * rstd / count;
    offset = (float)sum / count;
    for (size_t image = 0; image < norm->batch; image++) {
        size_t start = plane_start(norm, image, channel);
        const float *restrict input = (const float *)norm->input + start;
        float *restrict gradient = (float *)norm->gradient + start;

        for (size_t i = 0; i < norm->plane; i++) {
            gradient[i] = factor * (gradient[i] - offset - (input[i] - mean) * slope);
        }
    }
}

static size_t items(const struct batch_norm *norm)
{
    return (size_t)norm->batch * norm->channels * norm->plane;
}

/* Runs the operations that write the output, one tile per channel. */
static capu_status run_forward(const void *arguments, parallel_function tile)
{
    struct batch_norm norm = *(const struct batch_norm *)arguments;
    struct copies copies = {.element = norm.element};

    norm.input = copies_read(&copies, norm.input, items(&norm));
    norm.scale = copies_read(&copies, norm.scale, norm.channels);
    norm.shift = copies_read(&copies, norm.shift, norm.channels);
    norm.output = copies_write(&copies, norm.output, items(&norm));
    if (copies.status == CAPU_OK) {
        parallel_run(norm.channels, tile, &norm);
    }
    return copies_finish(&copies);
}

capu_status batch_norm_forward_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_forward(arguments, forward_tile);
}

capu_status batch_norm_replay_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_forward(arguments, replay_tile);
}

capu_status batch_norm_infer_host(capu_stream stream, const void *arguments)
{
    (void)stream;
    return run_forward(arguments, infer_tile);
}

capu_status batch_norm_backward_host(capu_stream stream, const void *arguments)
{
    struct batch_norm norm = *(const struct batch_norm *)arguments;
    struct copies copies = {.element = norm.element};

    (void)stream;
    norm.input = copies_read(&copies, norm.input, items(&norm));
    norm.scale = copies_read(&copies, norm.scale, norm.channels);
    norm.gradient = copies_update(&copies, norm.gradient, items(&norm));
    if (copies.status == CAPU_OK) {
        parallel_run(norm.channels, backward_tile, &norm);
    }
    return copies_finish(&copies);
}
