/*
 * softmax_cross_entropy on cuda: one warp per row; a second launch computes the mean, in a fixed
 * order. Exponentials are computed twice instead of being stored in between, so that every stored
 * value is rounded once.
 *
 * The host rejects a label that is not a class before it computes. Here it would have to wait for
 * the labels, so the row's loss and gradient become NaN instead.
 */
#include "kernels/softmax_cross_entropy.h"

#include "kernels/grid.cuh"

#include <math.h>

template <typename Element>
static __global__ void forward(const struct softmax_cross_entropy arguments)
{
    size_t classes = arguments.classes;

    for (size_t row = grid_first_row(); row < arguments.rows; row += grid_row_stride()) {
        const Element *logits = (const Element *)arguments.logits + row * classes;
        Element *probabilities = (Element *)arguments.probabilities + row * classes;
        float most = logits[0];
        float sum = 0.0f;
        float factor;

        for (size_t i = grid_lane(); i < classes; i += GRID_WARP) {
            most = fmaxf(most, logits[i]);
        }
        most = grid_warp_largest(most);
        for (size_t i = grid_lane(); i < classes; i += GRID_WARP) {
            sum += expf(logits[i] - most);
        }
        sum = grid_warp_sum(sum);
        factor = 1.0f / sum;
        for (size_t i = grid_lane(); i < classes; i += GRID_WARP) {
            probabilities[i] = expf(logits[i] - most) * factor;
        }
        if (grid_lane() == 0) {
            uint32_t label = (uint32_t)arguments.labels[row];

            /* From the logits and not from the probability, which may have become 0. */
            arguments.losses[row] = label < classes ? logf(sum) - (logits[label] - most) : nanf("");
        }
    }
}

static __global__ void average(const struct softmax_cross_entropy arguments)
{
    double sum = 0.0;

    for (size_t row = threadIdx.x; row < arguments.rows; row += blockDim.x) {
        sum += arguments.losses[row];
    }
    sum = grid_block_sum(sum);
    if (threadIdx.x == 0) {
        *arguments.mean = (float)(sum / arguments.rows);
    }
}

template <typename Element>
static __global__ void backward(const struct softmax_cross_entropy arguments)
{
    size_t classes = arguments.classes;

    for (size_t row = grid_first_row(); row < arguments.rows; row += grid_row_stride()) {
        const Element *probabilities = (const Element *)arguments.probabilities + row * classes;
        Element *to = (Element *)arguments.gradient + row * classes;
        uint32_t label = (uint32_t)arguments.labels[row];

        for (size_t i = grid_lane(); i < classes; i += GRID_WARP) {
            float gradient = probabilities[i] * arguments.scale;

            if (label >= classes) {
                gradient = nanf("");
            } else if (label == i) {
                gradient -= arguments.scale;
            }
            to[i] = gradient;
        }
    }
}

capu_status softmax_cross_entropy_forward_cuda(capu_stream stream, const void *argument_block)
{
    const struct softmax_cross_entropy *arguments =
        (const struct softmax_cross_entropy *)argument_block;

    GRID_LAUNCH_FOR(arguments->element, forward, grid_blocks(arguments->rows, GRID_WARPS),
                    GRID_THREADS, stream, *arguments);
    GRID_LAUNCH(average, 1, GRID_THREADS, stream, *arguments);
    return grid_status();
}

capu_status softmax_cross_entropy_backward_cuda(capu_stream stream, const void *argument_block)
{
    const struct softmax_cross_entropy *arguments =
        (const struct softmax_cross_entropy *)argument_block;

    GRID_LAUNCH_FOR(arguments->element, backward, grid_blocks(arguments->rows, GRID_WARPS),
                    GRID_THREADS, stream, *arguments);
    return grid_status();
}
