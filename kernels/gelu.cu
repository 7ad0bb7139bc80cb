/* gelu on cuda. */
#include "kernels/gelu.h"

#include "kernels/grid.cuh"

/* sqrt(2 / pi) */
#define ROOT 0.797884561f
#define CUBIC 0.044715f

struct two {
    float input;
    float gradient;
};

static __global__ void forward(const struct gelu gelu)
{
    grid_each(
        gelu.count, [&](size_t i) { return gelu.input[i]; },
        [&](size_t i, float x) {
            gelu.output[i] = 0.5f * x * (1.0f + tanhf(ROOT * (x + CUBIC * x * x * x)));
        });
}

static __global__ void backward(const struct gelu gelu)
{
    grid_each(
        gelu.count,
        [&](size_t i) {
            return two{gelu.input[i], gelu.gradient[i]};
        },
        [&](size_t i, const struct two &value) {
            float x = value.input;
            float tangent = tanhf(ROOT * (x + CUBIC * x * x * x));
            float slope = (1.0f - tangent * tangent) * ROOT * (1.0f + 3.0f * CUBIC * x * x);

            gelu.gradient[i] = value.gradient * (0.5f * (1.0f + tangent) + 0.5f * x * slope);
        });
}

capu_status gelu_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct gelu *gelu = (const struct gelu *)arguments;

    GRID_LAUNCH(forward, grid_blocks(gelu->count, GRID_EACH), GRID_THREADS, stream, *gelu);
    return grid_status();
}

capu_status gelu_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct gelu *gelu = (const struct gelu *)arguments;

    GRID_LAUNCH(backward, grid_blocks(gelu->count, GRID_EACH), GRID_THREADS, stream, *gelu);
    return grid_status();
}
