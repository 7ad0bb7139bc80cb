/*
 * CUDA's execution model on the host, as far as the kernels use it, so that their arithmetic,
 * indexing and barriers can be tested without a GPU and a toolkit. Included before every file that
 * is compiled for it.
 *
 * A launch runs its blocks one after the other: at once, or, with EMULATION_ON_FAKE, on the stream
 * of the fake CUDA runtime (tests/fake_cudart), so that whole programs run on the cuda device. The
 * threads of a block are fibers. Each runs until it ends or reaches a barrier, a shuffle or a
 * ballot, where it waits for the others. Shared memory is static, since one block runs at a time. A
 * barrier that not all threads reach, or a shuffle that a lane misses, ends the program with a
 * message; on a GPU both are undefined. Fibers always run in the same order, so mistakes that show
 * only in another order are not found.
 *
 * Device memory is host memory. Only one stream at a time may have launches. There can be several
 * devices, and a stream belongs to one of them, but they all behave alike.
 */
#ifndef CAPU_TESTS_GPU_EMULATION_H
#define CAPU_TESTS_GPU_EMULATION_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct dim3 {
    unsigned x;
    unsigned y;
    unsigned z;

    dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1)
        : x(width), y(height), z(depth)
    {
    }
};

struct __attribute__((may_alias, aligned(16))) float4 {
    float x;
    float y;
    float z;
    float w;
};

extern dim3 gridDim;
extern dim3 blockDim;
extern dim3 blockIdx;
extern dim3 threadIdx;

/* Runs `work` in stream order: at once, or when the stream of the fake runtime reaches it. */
typedef struct emulation_stream *cudaStream_t;
#ifndef EMULATION_ON_FAKE
struct emulation_stream {
    int device;
};
#endif
void emulation_enqueue(cudaStream_t stream, const std::function<void()> &work);

void emulation_launch(cudaStream_t stream, dim3 blocks, dim3 threads,
                      const std::function<void()> &thread);

/* Copies the arguments at the launch, as CUDA does. */
#define GRID_LAUNCH(kernel, blocks, threads, stream, ...)                                       \
    emulation_launch((cudaStream_t)(stream), dim3(blocks), dim3(threads),                       \
                     [arguments_ = std::make_tuple(__VA_ARGS__)] {                              \
                         std::apply([](auto... argument) { kernel(argument...); }, arguments_); \
                     })

void __syncthreads(void);

/* Waits until every lane of the warp has passed a value, and returns the values by lane. */
const uint64_t *emulation_exchange(uint64_t value);

template <typename Number> Number __shfl_xor_sync(unsigned, Number value, unsigned mask)
{
    uint64_t bits = 0;
    Number other;

    static_assert(sizeof(value) <= sizeof(bits), "a shuffle moves at most eight bytes");
    memcpy(&bits, &value, sizeof(value));
    bits = emulation_exchange(bits)[(threadIdx.x % 32) ^ mask];
    memcpy(&other, &bits, sizeof(other));
    return other;
}

unsigned __ballot_sync(unsigned, bool value);

static inline int __ffs(int value)
{
    return __builtin_ffs(value);
}

/* Single operations, rounded to nearest, as the host computes them without contraction. */
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}

static inline float __fsub_rn(float a, float b)
{
    return a - b;
}

static inline float __fmul_rn(float a, float b)
{
    return a * b;
}

static inline double __dadd_rn(double a, double b)
{
    return a + b;
}

static inline double __dmul_rn(double a, double b)
{
    return a * b;
}

/* The part of the CUDA runtime that the kernels and their test call. */
#define CUDART_VERSION 12080
typedef enum cudaError { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 } cudaError_t;
typedef enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost } cudaMemcpyKind;

cudaError_t cudaMalloc(void **address, size_t bytes);
cudaError_t cudaFree(void *address);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaGetLastError(void);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
const char *cudaGetErrorString(cudaError_t error);

#endif
