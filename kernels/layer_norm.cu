/*
 * layer_norm on cuda: one warp per row. The gradients of the parameters are sums over rows. There a
 * block has CHANNELS channels and LINES lines of threads; line k sums the rows k, k + LINES, ...,
 * and the lines are added in order.
 */
#include "kernels/layer_norm.h"

#include "kernels/grid.cuh"

#define EPSILON 1e-5f

/* A block of LINES x CHANNELS threads sums CHANNELS columns: 64 bytes of each row at once. */
#define CHANNELS 16u
#define LINES 32u

template <typename Element> static __global__ void forward(const struct layer_norm norm)
{
    const Element *scale = (const Element *)norm.scale;
    const Element *shift = (const Element *)norm.shift;
    size_t channels = norm.channels;

    for (size_t row = grid_first_row(); row < norm.rows; row += grid_row_stride()) {
        const Element *input = (const Element *)norm.input + row * channels;
        Element *output = (Element *)norm.output + row * channels;
        float sum = 0.0f;
        float squares = 0.0f;
        float mean;
        float rstd;

        for (size_t i = grid_lane(); i < channels; i += GRID_WARP) {
            sum += input[i];
        }
        mean = grid_warp_sum(sum) / (float)channels;
        for (size_t i = grid_lane(); i < channels; i += GRID_WARP) {
            squares += (input[i] - mean) * (input[i] - mean);
        }
        rstd = 1.0f / sqrtf(grid_warp_sum(squares) / (float)channels + EPSILON);
        for (size_t i = grid_lane(); i < channels; i += GRID_WARP) {
            output[i] = (input[i] - mean) * rstd * scale[i] + shift[i];
        }
        if (grid_lane() == 0) {
            norm.mean[row] = mean;
            norm.rstd[row] = rstd;
        }
    }
}

template <typename Element> static __global__ void backward_input(const struct layer_norm norm)
{
    const Element *scale = (const Element *)norm.scale;
    size_t channels = norm.channels;

    for (size_t row = grid_first_row(); row < norm.rows; row += grid_row_stride()) {
        const Element *gradient = (const Element *)norm.output_gradient + row * channels;
        const Element *input = (const Element *)norm.input + row * channels;
        Element *to = (Element *)norm.input_gradient + row * channels;
        float mean = norm.mean[row];
        float rstd = norm.rstd[row];
        float sum = 0.0f;
        float product = 0.0f;

        for (size_t i = grid_lane(); i < channels; i += GRID_WARP) {
            float scaled = gradient[i] * scale[i];

            sum += scaled;
            product += scaled * ((input[i] - mean) * rstd);
        }
        sum = grid_warp_sum(sum) / (float)channels;
        product = grid_warp_sum(product) / (float)channels;
        for (size_t i = grid_lane(); i < channels; i += GRID_WARP) {
            float normal = (input[i] - mean) * rstd;

            to[i] = to[i] + (gradient[i] * scale[i] - sum - normal * product) * rstd;
        }
    }
}

template <typename Element> static __global__ void backward_parameters(const struct layer_norm norm)
{
    __shared__ float scales[LINES][CHANNELS];
    __shared__ float shifts[LINES][CHANNELS];
    const Element *gradients = (const Element *)norm.output_gradient;
    const Element *inputs = (const Element *)norm.input;
    unsigned column = threadIdx.x % CHANNELS;
    unsigned line = threadIdx.x / CHANNELS;
    size_t channel = (size_t)blockIdx.x * CHANNELS + column;
    float scale = 0.0f;
    float shift = 0.0f;

    for (size_t row = line; row < norm.rows && channel < norm.channels; row += LINES) {
        float gradient = gradients[row * norm.channels + channel];
        float input = inputs[row * norm.channels + channel];

        scale += gradient * ((input - norm.mean[row]) * norm.rstd[row]);
        shift += gradient;
    }
    scales[line][column] = scale;
    shifts[line][column] = shift;
    __syncthreads();
    if (line != 0 || channel >= norm.channels) {
        return;
    }
    for (unsigned other = 1; other < LINES; other++) {
        scale += scales[other][column];
        shift += shifts[other][column];
    }
    norm.scale_gradient[channel] += scale;
    norm.shift_gradient[channel] += shift;
}

capu_status layer_norm_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct layer_norm *norm = (const struct layer_norm *)arguments;

    GRID_LAUNCH_FOR(norm->element, forward, grid_blocks(norm->rows, GRID_WARPS), GRID_THREADS,
                    stream, *norm);
    return grid_status();
}

capu_status layer_norm_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct layer_norm *norm = (const struct layer_norm *)arguments;

    GRID_LAUNCH_FOR(norm->element, backward_input, grid_blocks(norm->rows, GRID_WARPS),
                    GRID_THREADS, stream, *norm);
    GRID_LAUNCH_FOR(norm->element, backward_parameters, grid_blocks_all(norm->channels, CHANNELS),
                    LINES * CHANNELS, stream, *norm);
    return grid_status();
}
