/* layer_norm on cuda: one warp per row. The gradients of the parameters are sums over rows, in
 * parts (parts.cuh). */
#include "kernels/layer_norm.h"

#include "kernels/grid.cuh"
#include "kernels/parts.cuh"

#define EPSILON 1e-5f

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

template <typename Element>
static __global__ void backward_parameters(const struct layer_norm norm, float *parts)
{
    const Element *gradients = (const Element *)norm.output_gradient;
    const Element *inputs = (const Element *)norm.input;
    const float *mean = norm.mean;
    const float *rstd = norm.rstd;
    size_t channels = norm.channels;

    parts_sum_rows<2>(norm.rows, channels, parts, [=](size_t row, size_t channel, float *sums) {
        float gradient = gradients[row * channels + channel];
        float input = inputs[row * channels + channel];

        sums[0] += gradient * ((input - mean[row]) * rstd[row]);
        sums[1] += gradient;
    });
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
    dim3 blocks = parts_of_rows(norm->rows, norm->channels);
    size_t items = (size_t)blocks.y * norm->channels;
    void *scratch = NULL;
    const float *parts;
    capu_status status = parts_scratch(stream, 2 * items * sizeof(float), &scratch);

    if (status != CAPU_OK) {
        return status;
    }
    parts = (const float *)scratch;
    GRID_LAUNCH_FOR(norm->element, backward_input, grid_blocks(norm->rows, GRID_WARPS),
                    GRID_THREADS, stream, *norm);
    GRID_LAUNCH_FOR(norm->element, backward_parameters, blocks, PARTS_THREADS, stream, *norm,
                    (float *)scratch);
    parts_launch_add(stream, parts, blocks.y, norm->scale_gradient, norm->channels, true);
    parts_launch_add(stream, parts + items, blocks.y, norm->shift_gradient, norm->channels, true);
    return grid_status();
}
