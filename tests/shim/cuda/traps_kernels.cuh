// Kernels of several programs of traps, which do to their operands what a library that guesses
// would get wrong.
#ifndef TRAPS_KERNELS_CUH
#define TRAPS_KERNELS_CUH

#include "tests/shim/cuda/traps_grid.cuh"

#include <cuda_runtime.h>

const int kWindow = 16;

__device__ unsigned int arrived;
__device__ int order[kWindow];
__constant__ int shift;

__global__ void add_to(float *out, const float *in, int count)
{
    int i = global_index();

    if (i < count) {
        out[i] = out[i] * 0.75f + in[i];
    }
}

__global__ void scale(float *out, const float *in, float factor, int count)
{
    int i = global_index();

    if (i < count) {
        out[i] = in[i] * factor;
    }
}

__global__ void gather(float *out, const float *table, const int *indices, int count)
{
    int i = global_index();

    if (i < count) {
        out[i] = table[indices[i]] + 1.0f;
    }
}

__global__ void scatter(float *out, const float *in, const int *indices, int count)
{
    int i = global_index();

    if (i < count) {
        out[indices[i]] = in[i] - 1.0f;
    }
}

// The block that is the last to draw a ticket adds up what the others have left.
__global__ void sum_by_last_block(float *sum, float *partial, const float *in, int count)
{
    __shared__ float values[kThreads];
    __shared__ bool is_last;
    int i = global_index();

    values[threadIdx.x] = i < count ? in[i] : 0.0f;
    for (int step = kThreads / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) {
            values[threadIdx.x] += values[threadIdx.x + step];
        }
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = values[0];
        __threadfence();
        is_last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        float total = 0.0f;

        for (int block = 0; block < gridDim.x; block++) {
            total += partial[block];
        }
        *sum = total;
    }
}

// Where it reads is decided by a variable that the host sets.
__global__ void copy_shifted(float *out, const float *in, int count)
{
    int i = global_index();

    if (i < count) {
        out[i] = in[(i + shift + order[i % kWindow]) % count];
    }
}

// Turns the order for the next launch.
__global__ void turn_order()
{
    int value = order[(threadIdx.x + 1) % kWindow];

    __syncthreads();
    order[threadIdx.x] = value + 3;
}

// Pointers that lie in device memory.
__global__ void through_table(float *const *table, int tables, int count)
{
    int i = global_index();

    for (int k = 0; k < tables && i < count; k++) {
        table[k][i] += static_cast<float>(k + 1);
    }
}

#endif
