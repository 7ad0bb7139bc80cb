// Kernels that do to their operands what a library that guesses would get wrong.
#ifndef TRAPS_KERNELS_CUH
#define TRAPS_KERNELS_CUH

#include <cuda_runtime.h>

const int kThreads = 128;
const int kWindow = 16;

__device__ unsigned int arrived;
__device__ int order[kWindow];
__constant__ int shift;

__device__ inline int global_index()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

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

__global__ void add_to(float *out, const float *in, int count)
{
    int i = global_index();

    if (i < count) {
        out[i] = out[i] * 0.75f + in[i];
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

__global__ void scale(float *out, const float *in, float factor, int count)
{
    int i = global_index();

    if (i < count) {
        out[i] = in[i] * factor;
    }
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

// Pointers that lie in device memory.
__global__ void through_table(float *const *table, int tables, int count)
{
    int i = global_index();

    for (int k = 0; k < tables && i < count; k++) {
        table[k][i] += static_cast<float>(k + 1);
    }
}

#endif
