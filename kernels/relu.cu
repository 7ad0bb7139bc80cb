/* relu on cuda. A NaN stays one, as on the host. */
#include "kernels/relu.h"

#include "kernels/grid.cuh"

static __global__ void forward(const struct relu relu)
{
    for (size_t i = grid_first(); i < relu.count; i += grid_stride()) {
        float x = relu.input[i];

        relu.output[i] = x < 0.0f ? 0.0f : x;
    }
}

static __global__ void backward(const struct relu relu)
{
    for (size_t i = grid_first(); i < relu.count; i += grid_stride()) {
        float output = relu.output[i];

        /* An output is never negative: 0 or NaN. */
        if (!(output > 0.0f)) {
            relu.gradient[i] = output * 0.0f;
        }
    }
}

capu_status relu_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct relu *relu = (const struct relu *)arguments;

    GRID_LAUNCH(forward, grid_blocks(relu->count, GRID_THREADS), GRID_THREADS, stream, *relu);
    return grid_status();
}

capu_status relu_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct relu *relu = (const struct relu *)arguments;

    GRID_LAUNCH(backward, grid_blocks(relu->count, GRID_THREADS), GRID_THREADS, stream, *relu);
    return grid_status();
}
