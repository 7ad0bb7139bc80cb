/* gradient_norm on cuda: one part of the range per block; then the parts are added in order. */
#include "kernels/gradient_norm.h"

#include "kernels/blas.cuh"
#include "kernels/grid.cuh"

/* Enough parts to fill a device; fewer for a short range. */
#define PARTS_LIMIT 1024u
#define PART_ITEMS ((size_t)GRID_THREADS * 16)

/* Summed in double, because a thread has many items. */
static __global__ void sum_parts(const struct gradient_norm arguments, double *sums)
{
    double sum = 0.0;

    for (size_t i = grid_first(); i < arguments.count; i += grid_stride()) {
        double value = arguments.gradient[i];

        sum += value * value;
    }
    sum = grid_block_sum(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

static __global__ void finish(const struct gradient_norm arguments, const double *sums,
                              unsigned parts)
{
    double sum = 0.0;

    for (unsigned i = threadIdx.x; i < parts; i += blockDim.x) {
        sum += sums[i];
    }
    sum = grid_block_sum(sum);
    if (threadIdx.x == 0) {
        *arguments.norm = (float)sqrt(sum);
    }
}

capu_status gradient_norm_cuda(capu_stream stream, const void *arguments)
{
    const struct gradient_norm *norm = (const struct gradient_norm *)arguments;
    unsigned parts = grid_blocks(norm->count, PART_ITEMS);
    void *sums = NULL;
    capu_status status = blas_scratch(stream, &sums);

    if (status != CAPU_OK) {
        return status;
    }
    parts = parts < PARTS_LIMIT ? parts : PARTS_LIMIT;
    GRID_LAUNCH(sum_parts, parts, GRID_THREADS, stream, *norm, (double *)sums);
    GRID_LAUNCH(finish, 1, GRID_THREADS, stream, *norm, (const double *)sums, parts);
    return grid_status();
}
