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

template <typename Element> static __global__ void forward(const struct gelu gelu)
{
    const Element *input = (const Element *)gelu.input;
    Element *output = (Element *)gelu.output;

    grid_each(
        gelu.count, [&](size_t i) -> float { return input[i]; },
        [&](size_t i, float x) {
            output[i] = 0.5f * x * (1.0f + tanhf(ROOT * (x + CUBIC * x * x * x)));
        });
}

template <typename Element> static __global__ void backward(const struct gelu gelu)
{
    const Element *input = (const Element *)gelu.input;
    Element *gradient = (Element *)gelu.gradient;

    grid_each(
        gelu.count,
        [&](size_t i) {
            return two{input[i], gradient[i]};
        },
        [&](size_t i, const struct two &value) {
            float x = value.input;
            float tangent = tanhf(ROOT * (x + CUBIC * x * x * x));
            float slope = (1.0f - tangent * tangent) * ROOT * (1.0f + 3.0f * CUBIC * x * x);

            gradient[i] = value.gradient * (0.5f * (1.0f + tangent) + 0.5f * x * slope);
        });
}

capu_status gelu_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct gelu *gelu = (const struct gelu *)arguments;

    GRID_LAUNCH_FOR(gelu->element, forward, grid_blocks(gelu->count, GRID_EACH), GRID_THREADS,
                    stream, *gelu);
    return grid_status();
}

capu_status gelu_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct gelu *gelu = (const struct gelu *)arguments;

    GRID_LAUNCH_FOR(gelu->element, backward, grid_blocks(gelu->count, GRID_EACH), GRID_THREADS,
                    stream, *gelu);
    return grid_status();
}
