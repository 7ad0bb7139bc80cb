/* residual on cuda. */
#include "kernels/residual.h"

#include "kernels/grid.cuh"

/* Added when all are loaded: an addition in between would wait. */
struct two {
    float a;
    float b;
};

static __device__ void add(float *to, const float *a, const float *b, size_t count)
{
    grid_each(
        count,
        [&](size_t i) {
            return two{a[i], b[i]};
        },
        [&](size_t i, const struct two &value) { to[i] = value.a + value.b; });
}

static __global__ void forward(const struct residual residual)
{
    add(residual.output, residual.input, residual.branch, residual.count);
}

static __global__ void backward(const struct residual residual)
{
    add(residual.input_gradient, residual.input_gradient, residual.output_gradient, residual.count);
    if (residual.branch_gradient != NULL) {
        add(residual.branch_gradient, residual.branch_gradient, residual.output_gradient,
            residual.count);
    }
}

capu_status residual_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct residual *residual = (const struct residual *)arguments;

    GRID_LAUNCH(forward, grid_blocks(residual->count, GRID_EACH), GRID_THREADS, stream, *residual);
    return grid_status();
}

capu_status residual_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct residual *residual = (const struct residual *)arguments;

    GRID_LAUNCH(backward, grid_blocks(residual->count, GRID_EACH), GRID_THREADS, stream, *residual);
    return grid_status();
}
