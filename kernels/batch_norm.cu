/*
 * batch_norm on cuda. A channel is split into parts (parts.cuh), and a block handles one part of
 * one channel: it sums its part and stores the sum, and the next launch adds the parts in order
 * before it goes on. Threads sum floats, and their sums are added in double, in a fixed order.
 */
#include "kernels/batch_norm.h"

#include "kernels/grid.cuh"
#include "kernels/parts.cuh"

#define THREADS 512u

/* A part with fewer items would be over before its launch. */
#define PART_ITEMS (4u * THREADS)

/* Sums of the parts, channels x parts: in forward the sums and those of the squared distances from
   the mean, in backward those of the gradients and of the products with the distances. */
struct sums {
    double *first;
    double *second;
};

/* The items of a channel, counted over all images, that belong to the block. */
struct slice {
    uint32_t count; /* of the channel */
    uint32_t first;
    uint32_t end;
};

static __device__ struct slice slice_of(const struct batch_norm &norm)
{
    struct slice slice;
    uint32_t each;

    slice.count = norm.batch * norm.plane;
    each = (slice.count + gridDim.y - 1) / gridDim.y;
    slice.first = blockIdx.y * each < slice.count ? blockIdx.y * each : slice.count;
    slice.end = slice.count - slice.first > each ? slice.first + each : slice.count;
    return slice;
}

/* The place of item `i` of the channel. */
static __device__ size_t place(const struct batch_norm &norm, uint32_t i)
{
    uint32_t image = i / norm.plane;

    return ((size_t)image * norm.channels + blockIdx.x) * norm.plane + (i - image * norm.plane);
}

/* All threads must take part. */
static __device__ void store_part(double *sums, float value)
{
    double sum = grid_block_sum(value);

    if (threadIdx.x == 0) {
        sums[(size_t)blockIdx.x * gridDim.y + blockIdx.y] = sum;
    }
}

/* Of the channel. */
static __device__ double add_parts(const double *sums)
{
    double sum = 0.0;

    for (unsigned part = 0; part < gridDim.y; part++) {
        sum += sums[(size_t)blockIdx.x * gridDim.y + part];
    }
    return sum;
}

/* output = factor input + offset. */
template <typename Element>
static __device__ void scale_slice(const struct batch_norm &norm, float factor, float offset)
{
    const Element *input = (const Element *)norm.input;
    Element *output = (Element *)norm.output;
    struct slice slice = slice_of(norm);

    for (uint32_t i = slice.first + threadIdx.x; i < slice.end; i += THREADS) {
        size_t at = place(norm, i);

        output[at] = input[at] * factor + offset;
    }
}

template <typename Element>
static __global__ void sum_items(const struct batch_norm norm, struct sums sums)
{
    const Element *input = (const Element *)norm.input;
    struct slice slice = slice_of(norm);
    float sum = 0.0f;

    for (uint32_t i = slice.first + threadIdx.x; i < slice.end; i += THREADS) {
        sum += input[place(norm, i)];
    }
    store_part(sums.first, sum);
}

template <typename Element>
static __global__ void sum_squares(const struct batch_norm norm, struct sums sums)
{
    const Element *input = (const Element *)norm.input;
    struct slice slice = slice_of(norm);
    float mean = (float)(add_parts(sums.first) / slice.count);
    float squares = 0.0f;

    for (uint32_t i = slice.first + threadIdx.x; i < slice.end; i += THREADS) {
        float distance = input[place(norm, i)] - mean;

        squares += distance * distance;
    }
    store_part(sums.second, squares);
}

template <typename Element>
static __global__ void normalise(const struct batch_norm norm, struct sums sums, bool is_replay)
{
    uint32_t channel = blockIdx.x;
    float scale = ((const Element *)norm.scale)[channel];
    float shift = ((const Element *)norm.shift)[channel];
    uint32_t count = norm.batch * norm.plane;
    double mean = add_parts(sums.first) / count;
    double variance = add_parts(sums.second) / count;
    double rstd = 1.0 / sqrt(variance + norm.epsilon);
    double factor = scale * rstd;

    scale_slice<Element>(norm, (float)factor, (float)(shift - mean * factor));
    if (threadIdx.x != 0 || blockIdx.y != 0) {
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

    scale_slice<Element>(norm, (float)factor, (float)(shift - norm.running_mean[channel] * factor));
}

template <typename Element>
static __global__ void sum_gradients(const struct batch_norm norm, struct sums sums)
{
    const Element *input = (const Element *)norm.input;
    const Element *gradient = (const Element *)norm.gradient;
    struct slice slice = slice_of(norm);
    float mean = norm.saved_mean[blockIdx.x];
    float sum = 0.0f;
    float product = 0.0f;

    for (uint32_t i = slice.first + threadIdx.x; i < slice.end; i += THREADS) {
        size_t at = place(norm, i);

        sum += gradient[at];
        product += gradient[at] * (input[at] - mean);
    }
    store_part(sums.first, sum);
    store_part(sums.second, product);
}

template <typename Element>
static __global__ void backward(const struct batch_norm norm, struct sums sums)
{
    const Element *input = (const Element *)norm.input;
    Element *gradient = (Element *)norm.gradient;
    uint32_t channel = blockIdx.x;
    struct slice slice = slice_of(norm);
    float mean = norm.saved_mean[channel];
    float rstd = norm.saved_rstd[channel];
    float factor = ((const Element *)norm.scale)[channel] * rstd;
    float sum = (float)add_parts(sums.first);
    float product = (float)add_parts(sums.second);
    /* factor (gradient - mean gradient - normalised input * mean product) */
    float slope = product * rstd * rstd / (float)slice.count;
    float offset = sum / (float)slice.count;

    for (uint32_t i = slice.first + threadIdx.x; i < slice.end; i += THREADS) {
        size_t at = place(norm, i);

        gradient[at] = factor * (gradient[at] - offset - (input[at] - mean) * slope);
    }
    if (threadIdx.x == 0 && blockIdx.y == 0) {
        norm.shift_gradient[channel] = sum;
        norm.scale_gradient[channel] = product * rstd;
    }
}

/* Items of a channel are counted in 32 bits, including one stride or part past the end. */
static capu_status blocks_of(const struct batch_norm *norm, dim3 *blocks)
{
    uint64_t count = (uint64_t)norm->batch * norm->plane;

    if (count > UINT32_MAX - THREADS) {
        return CAPU_TOO_LARGE;
    }
    *blocks = dim3(norm->channels, parts_count((size_t)count, PART_ITEMS, norm->channels));
    return CAPU_OK;
}

/* The blocks, and memory for the sums of all parts. */
static capu_status prepare(capu_stream stream, const struct batch_norm *norm, dim3 *blocks,
                           struct sums *sums)
{
    void *scratch = NULL;
    size_t count;
    capu_status status = blocks_of(norm, blocks);

    if (status != CAPU_OK) {
        return status;
    }
    count = (size_t)blocks->x * blocks->y;
    status = parts_scratch(stream, 2 * count * sizeof(double), &scratch);
    if (status == CAPU_OK) {
        sums->first = (double *)scratch;
        sums->second = sums->first + count;
    }
    return status;
}

static capu_status forward(capu_stream stream, const struct batch_norm *norm, bool is_replay)
{
    struct sums sums;
    dim3 blocks;
    capu_status status = prepare(stream, norm, &blocks, &sums);

    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH_FOR(norm->element, sum_items, blocks, THREADS, stream, *norm, sums);
    GRID_LAUNCH_FOR(norm->element, sum_squares, blocks, THREADS, stream, *norm, sums);
    GRID_LAUNCH_FOR(norm->element, normalise, blocks, THREADS, stream, *norm, sums, is_replay);
    return grid_status();
}

capu_status batch_norm_forward_cuda(capu_stream stream, const void *arguments)
{
    return forward(stream, (const struct batch_norm *)arguments, false);
}

capu_status batch_norm_replay_cuda(capu_stream stream, const void *arguments)
{
    return forward(stream, (const struct batch_norm *)arguments, true);
}

capu_status batch_norm_infer_cuda(capu_stream stream, const void *arguments)
{
    const struct batch_norm *norm = (const struct batch_norm *)arguments;
    dim3 blocks;
    capu_status status = blocks_of(norm, &blocks);

    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH_FOR(norm->element, infer, blocks, THREADS, stream, *norm);
    return grid_status();
}

capu_status batch_norm_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct batch_norm *norm = (const struct batch_norm *)arguments;
    struct sums sums;
    dim3 blocks;
    capu_status status = prepare(stream, norm, &blocks, &sums);

    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH_FOR(norm->element, sum_gradients, blocks, THREADS, stream, *norm, sums);
    GRID_LAUNCH_FOR(norm->element, backward, blocks, THREADS, stream, *norm, sums);
    return grid_status();
}
