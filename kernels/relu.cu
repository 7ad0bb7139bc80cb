/* relu on cuda. A NaN stays one, as on the host. */
#include "kernels/relu.h"

#include "kernels/grid.cuh"

static __global__ void forward(const struct relu relu)
{
    grid_each(
        relu.count, [&](size_t i) { return relu.input[i]; },
        [&](size_t i, float x) { relu.output[i] = x < 0.0f ? 0.0f : x; });
}

static __global__ void backward(const struct relu relu)
{
    grid_each(
        relu.count, [&](size_t i) { return relu.output[i]; },
        [&](size_t i, float output) {
            /* An output is never negative: 0 or NaN. */
            if (!(output > 0.0f)) {
                relu.gradient[i] = output * 0.0f;
            }
        });
}

capu_status relu_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct relu *relu = (const struct relu *)arguments;

    GRID_LAUNCH(forward, grid_blocks(relu->count, GRID_EACH), GRID_THREADS, stream, *relu);
    return grid_status();
}

capu_status relu_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct relu *relu = (const struct relu *)arguments;

    GRID_LAUNCH(backward, grid_blocks(relu->count, GRID_EACH), GRID_THREADS, stream, *relu);
    return grid_status();
}
