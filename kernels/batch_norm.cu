/*
 * batch_norm on cuda: one block per channel. Threads sum floats, and their sums are added in
 * double, in a fixed order.
 */
#include "kernels/batch_norm.h"

#include "kernels/grid.cuh"

#define THREADS 512u

/* The place of item `i` of a channel, counted over all images. */
static __device__ size_t place(const struct batch_norm &norm, uint32_t i)
{
    uint32_t image = i / norm.plane;

    return ((size_t)image * norm.channels + blockIdx.x) * norm.plane + (i - image * norm.plane);
}

/* output = factor input + offset over the whole channel. */
template <typename Element>
static __device__ void scale_channel(const struct batch_norm &norm, float factor, float offset)
{
    const Element *input = (const Element *)norm.input;
    Element *output = (Element *)norm.output;
    uint32_t count = norm.batch * norm.plane;

    for (uint32_t i = threadIdx.x; i < count; i += THREADS) {
        size_t at = place(norm, i);

        output[at] = input[at] * factor + offset;
    }
}

template <typename Element>
static __global__ void forward(const struct batch_norm norm, bool is_replay)
{
    const Element *input = (const Element *)norm.input;
    uint32_t channel = blockIdx.x;
    float scale = ((const Element *)norm.scale)[channel];
    float shift = ((const Element *)norm.shift)[channel];
    uint32_t count = norm.batch * norm.plane;
    float sum = 0.0f;
    float squares = 0.0f;
    double mean;
    double variance;
    double rstd;
    double factor;

    for (uint32_t i = threadIdx.x; i < count; i += THREADS) {
        sum += input[place(norm, i)];
    }
    mean = grid_block_sum(sum) / count;
    for (uint32_t i = threadIdx.x; i < count; i += THREADS) {
        float distance = input[place(norm, i)] - (float)mean;

        squares += distance * distance;
    }
    variance = grid_block_sum(squares) / count;
    rstd = 1.0 / sqrt(variance + norm.epsilon);
    factor = scale * rstd;
    scale_channel<Element>(norm, (float)factor, (float)(shift - mean * factor));
    if (threadIdx.x != 0) {
        return;
    }
    norm.saved_mean[channel] = (float)mean;
    norm.saved_rstd[channel] = (float)rstd;
    if (!is_replay) {
        norm.running_mean[channel] += norm.momentum * ((float)mean - norm.running_mean[channel]);
        norm.running_variance[channel] +=
            norm.momentum * ((float)variance - norm.running_variance[channel]);
    }
}

template <typename Element> static __global__ void infer(const struct batch_norm norm)
{
    uint32_t channel = blockIdx.x;
    float scale = ((const Element *)norm.scale)[channel];
    float shift = ((const Element *)norm.shift)[channel];
    double rstd = 1.0 / sqrt((double)norm.running_variance[channel] + norm.epsilon);
    double factor = scale * rstd;

    scale_channel<Element>(norm, (float)factor,
                           (float)(shift - norm.running_mean[channel] * factor));
}

template <typename Element> static __global__ void backward(const struct batch_norm norm)
{
    const Element *input = (const Element *)norm.input;
    Element *gradient = (Element *)norm.gradient;
    uint32_t channel = blockIdx.x;
    uint32_t count = norm.batch * norm.plane;
    float mean = norm.saved_mean[channel];
    float rstd = norm.saved_rstd[channel];
    float factor = ((const Element *)norm.scale)[channel] * rstd;
    float sum = 0.0f;
    float product = 0.0f;
    float slope;
    float offset;

    for (uint32_t i = threadIdx.x; i < count; i += THREADS) {
        size_t at = place(norm, i);

        sum += gradient[at];
        product += gradient[at] * (input[at] - mean);
    }
    sum = (float)grid_block_sum(sum);
    product = (float)grid_block_sum(product);
    /* factor (gradient - mean gradient - normalised input * mean product) */
    slope = product * rstd * rstd / (float)count;
    offset = sum / (float)count;
    for (uint32_t i = threadIdx.x; i < count; i += THREADS) {
        size_t at = place(norm, i);

        gradient[at] = factor * (gradient[at] - offset - (input[at] - mean) * slope);
    }
    if (threadIdx.x == 0) {
        norm.shift_gradient[channel] = sum;
        norm.scale_gradient[channel] = product * rstd;
    }
}

/* Items of a channel are counted in 32 bits, including one stride past the end. */
static capu_status check(const struct batch_norm *norm)
{
    uint64_t count = (uint64_t)norm->batch * norm->plane;

    return count <= UINT32_MAX - THREADS ? CAPU_OK : CAPU_TOO_LARGE;
}

capu_status batch_norm_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct batch_norm *norm = (const struct batch_norm *)arguments;
    capu_status status = check(norm);

    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH_FOR(norm->element, forward, norm->channels, THREADS, stream, *norm, false);
    return grid_status();
}

capu_status batch_norm_replay_cuda(capu_stream stream, const void *arguments)
{
    const struct batch_norm *norm = (const struct batch_norm *)arguments;
    capu_status status = check(norm);

    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH_FOR(norm->element, forward, norm->channels, THREADS, stream, *norm, true);
    return grid_status();
}

capu_status batch_norm_infer_cuda(capu_stream stream, const void *arguments)
{
    const struct batch_norm *norm = (const struct batch_norm *)arguments;
    capu_status status = check(norm);

    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH_FOR(norm->element, infer, norm->channels, THREADS, stream, *norm);
    return grid_status();
}

capu_status batch_norm_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct batch_norm *norm = (const struct batch_norm *)arguments;
    capu_status status = check(norm);

    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH_FOR(norm->element, backward, norm->channels, THREADS, stream, *norm);
    return grid_status();
}
