/* residual on cuda. */
#include "kernels/residual.h"

#include "kernels/grid.cuh"

/* Added after all are loaded: an addition in between would wait for its load. */
struct two {
    float a;
    float b;
};

template <typename Element>
static __device__ void add(void *sums, const void *first, const void *second, size_t count)
{
    Element *to = (Element *)sums;
    const Element *a = (const Element *)first;
    const Element *b = (const Element *)second;

    grid_each(
        count,
        [&](size_t i) {
            return two{a[i], b[i]};
        },
        [&](size_t i, const struct two &value) { to[i] = value.a + value.b; });
}

template <typename Element> static __global__ void forward(const struct residual residual)
{
    add<Element>(residual.output, residual.input, residual.branch, residual.count);
}

template <typename Element> static __global__ void backward(const struct residual residual)
{
    add<Element>(residual.input_gradient, residual.input_gradient, residual.output_gradient,
                 residual.count);
    if (residual.branch_gradient != NULL) {
        add<Element>(residual.branch_gradient, residual.branch_gradient, residual.output_gradient,
                     residual.count);
    }
}

capu_status residual_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct residual *residual = (const struct residual *)arguments;

    GRID_LAUNCH_FOR(residual->element, forward, grid_blocks(residual->count, GRID_EACH),
                    GRID_THREADS, stream, *residual);
    return grid_status();
}

capu_status residual_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct residual *residual = (const struct residual *)arguments;

    GRID_LAUNCH_FOR(residual->element, backward, grid_blocks(residual->count, GRID_EACH),
                    GRID_THREADS, stream, *residual);
    return grid_status();
}
