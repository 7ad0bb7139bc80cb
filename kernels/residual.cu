/* residual on cuda. */
#include "kernels/residual.h"

#include "kernels/grid.cuh"

static __global__ void forward(const struct residual residual)
{
    for (size_t i = grid_first(); i < residual.count; i += grid_stride()) {
        residual.output[i] = residual.input[i] + residual.branch[i];
    }
}

static __global__ void backward(const struct residual residual)
{
    for (size_t i = grid_first(); i < residual.count; i += grid_stride()) {
        float gradient = residual.output_gradient[i];

        residual.input_gradient[i] += gradient;
        if (residual.branch_gradient != NULL) {
            residual.branch_gradient[i] += gradient;
        }
    }
}

capu_status residual_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct residual *residual = (const struct residual *)arguments;

    GRID_LAUNCH(forward, grid_blocks(residual->count, GRID_THREADS), GRID_THREADS, stream,
                *residual);
    return grid_status();
}

capu_status residual_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct residual *residual = (const struct residual *)arguments;

    GRID_LAUNCH(backward, grid_blocks(residual->count, GRID_THREADS), GRID_THREADS, stream,
                *residual);
    return grid_status();
}
