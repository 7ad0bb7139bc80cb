/* gelu on cuda. */
#include "kernels/gelu.h"

#include "kernels/grid.cuh"

/* sqrt(2 / pi) */
#define ROOT 0.797884561f
#define CUBIC 0.044715f

static __global__ void forward(const struct gelu gelu)
{
    for (size_t i = grid_first(); i < gelu.count; i += grid_stride()) {
        float x = gelu.input[i];

        gelu.output[i] = 0.5f * x * (1.0f + tanhf(ROOT * (x + CUBIC * x * x * x)));
    }
}

static __global__ void backward(const struct gelu gelu)
{
    for (size_t i = grid_first(); i < gelu.count; i += grid_stride()) {
        float x = gelu.input[i];
        float tangent = tanhf(ROOT * (x + CUBIC * x * x * x));
        float slope = (1.0f - tangent * tangent) * ROOT * (1.0f + 3.0f * CUBIC * x * x);

        gelu.gradient[i] *= 0.5f * (1.0f + tangent) + 0.5f * x * slope;
    }
}

capu_status gelu_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct gelu *gelu = (const struct gelu *)arguments;

    GRID_LAUNCH(forward, grid_blocks(gelu->count, GRID_THREADS), GRID_THREADS, stream, *gelu);
    return grid_status();
}

capu_status gelu_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct gelu *gelu = (const struct gelu *)arguments;

    GRID_LAUNCH(backward, grid_blocks(gelu->count, GRID_THREADS), GRID_THREADS, stream, *gelu);
    return grid_status();
}
