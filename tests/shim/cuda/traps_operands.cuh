// Kernels of traps.cu alone, for the same purpose as those of traps_kernels.cuh.
#ifndef TRAPS_OPERANDS_CUH
#define TRAPS_OPERANDS_CUH

#include "tests/shim/cuda/traps_grid.cuh"

#include <cuda_runtime.h>

// Writes the lower triangle of a square, and leaves the rest as it is.
__global__ void triangle(float *out, const float *in, int side)
{
    int i = global_index();

    if (i < side * side && i % side <= i / side) {
        out[i] = in[i] * 0.5f;
    }
}

// `bias` and `saved` may be null.
__global__ void optional_operands(float *out, const float *in, const float *bias, float *saved,
                                  int count)
{
    int i = global_index();

    if (i < count) {
        float value = in[i] + (bias != nullptr ? bias[i] : 1.0f);

        if (saved != nullptr) {
            saved[i] = value;
        }
        out[i] = value * 2.0f;
    }
}

// Writes all of what both point to, if that is one array in two parts.
__global__ void in_two_parts(float *low, float *high, const float *in, int half)
{
    int i = global_index();

    if (i < half) {
        low[i] = in[i] + 1.0f;
        high[i] = in[half + i] - 1.0f;
    }
}

// Writes all of `between`, and reads what another thread of the block has written there.
__global__ void through_neighbours(float *out, float *between, const float *in)
{
    int i = global_index();

    between[i] = in[i] * 3.0f;
    __syncthreads();
    out[i] = out[i] * 0.5f + between[i ^ 1];
}

struct Job {
    float *to;
    int count;
    const float *from[3];
    float factors[3];
};

// Which pointer of the structure is read is an argument.
__global__ void weighted(Job job, int first)
{
    int i = global_index();

    if (i < job.count) {
        float sum = job.to[i];

        for (int k = first; k < 3; k++) {
            sum += job.from[k][i] * job.factors[k];
        }
        job.to[i] = sum;
    }
}

__global__ void histogram(unsigned int *bins, unsigned int *largest, const float *in, int count,
                          int bin_count)
{
    int i = global_index();

    if (i < count) {
        int bin = static_cast<int>(in[i] * 37.0f) % bin_count;

        atomicAdd(&bins[bin < 0 ? -bin : bin], 1u);
        atomicMax(largest, static_cast<unsigned int>(i % 1013));
    }
}

// Reads whole vectors, also where only a part of the last one is there.
__global__ void add_vectors(float *out, const float4 *in, int count)
{
    int i = global_index() * 4;

    if (i < count) {
        float4 value = in[i / 4];

        out[i] = value.x + 1.0f;
        if (i + 1 < count) {
            out[i + 1] = value.y + 2.0f;
        }
        if (i + 2 < count) {
            out[i + 2] = value.z + 3.0f;
        }
        if (i + 3 < count) {
            out[i + 3] = value.w + 4.0f;
        }
    }
}

// Half words, where the input says so.
__global__ void store_halves(unsigned short *out, const float *in, int count)
{
    int i = global_index();

    if (i < count && in[i] > 0.0f) {
        out[i] = static_cast<unsigned short>(i * 7);
    }
}

// Each block turns its part around, through memory whose size the launch says.
__global__ void reverse_blocks(float *out, const float *in, int count)
{
    extern __shared__ float dynamic[];
    __shared__ float first;
    int i = global_index();

    dynamic[threadIdx.x] = i < count ? in[i] : 0.0f;
    if (threadIdx.x == 0) {
        first = 3.0f;
    }
    __syncthreads();
    if (i < count) {
        out[i] = dynamic[blockDim.x - 1 - threadIdx.x] + first;
    }
}

template <int Step, typename T> __global__ void every(T *out, T value, int count)
{
    int i = global_index() * Step;

    if (i < count) {
        out[i] += value;
    }
}

#endif
