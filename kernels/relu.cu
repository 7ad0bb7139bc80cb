/* relu on cuda. A NaN stays a NaN, as on the host. */
#include "kernels/relu.h"

#include "kernels/grid.cuh"

template <typename Element> static __global__ void forward(const struct relu relu)
{
    const Element *input = (const Element *)relu.input;
    Element *output = (Element *)relu.output;

    grid_each(
        relu.count, [&](size_t i) -> float { return input[i]; },
        [&](size_t i, float x) { output[i] = x < 0.0f ? 0.0f : x; });
}

template <typename Element> static __global__ void backward(const struct relu relu)
{
    const Element *outputs = (const Element *)relu.output;
    Element *gradient = (Element *)relu.gradient;

    grid_each(
        relu.count, [&](size_t i) -> float { return outputs[i]; },
        [&](size_t i, float output) {
            /* An output is never negative, so this is 0 or NaN. */
            if (!(output > 0.0f)) {
                gradient[i] = output * 0.0f;
            }
        });
}

capu_status relu_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct relu *relu = (const struct relu *)arguments;

    GRID_LAUNCH_FOR(relu->element, forward, grid_blocks(relu->count, GRID_EACH), GRID_THREADS,
                    stream, *relu);
    return grid_status();
}

capu_status relu_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct relu *relu = (const struct relu *)arguments;

    GRID_LAUNCH_FOR(relu->element, backward, grid_blocks(relu->count, GRID_EACH), GRID_THREADS,
                    stream, *relu);
    return grid_status();
}
