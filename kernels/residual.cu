/* residual on cuda. */
#include "kernels/residual.h"

#include "kernels/grid.cuh"

static __global__ void forward(const struct residual residual)
{
    grid_each(
        residual.count, [&](size_t i) { return residual.input[i] + residual.branch[i]; },
        [&](size_t i, float sum) { residual.output[i] = sum; });
}

static __global__ void backward(const struct residual residual)
{
    grid_each(
        residual.count,
        [&](size_t i) { return residual.input_gradient[i] + residual.output_gradient[i]; },
        [&](size_t i, float sum) { residual.input_gradient[i] = sum; });
    if (residual.branch_gradient != NULL) {
        grid_each(
            residual.count,
            [&](size_t i) { return residual.branch_gradient[i] + residual.output_gradient[i]; },
            [&](size_t i, float sum) { residual.branch_gradient[i] = sum; });
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
