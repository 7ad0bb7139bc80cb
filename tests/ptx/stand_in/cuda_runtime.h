/*
 * Stands in for NVIDIA's header where nvcc is missing, so that g++ compiles the host code of a CUDA
 * program; see build.sh. Kernels must compile too, but never run: the device code is the PTX that
 * is kept beside the program. A kernel and its PTX are brought together by the name that both
 * compilers give it. C++17. The runtime's types and calls are those of tests/ptx/include; of what
 * is left, only what the programs in examples/unmodified and tests/shim, and the kernels of
 * kernels/, use is here.
 */
#ifndef CAPU_TESTS_PTX_STAND_IN_CUDA_RUNTIME_H
#define CAPU_TESTS_PTX_STAND_IN_CUDA_RUNTIME_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define CUDART_VERSION 13000

extern "C" {
#include "tests/ptx/include/cudart_types.h"
}

// As in NVIDIA's header: each thread of the host has a default stream of its own.
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define cudaMemcpy cudaMemcpy_ptds
#define cudaMemcpyAsync cudaMemcpyAsync_ptsz
#define cudaMemcpy2D cudaMemcpy2D_ptds
#define cudaMemcpy2DAsync cudaMemcpy2DAsync_ptsz
#define cudaMemset cudaMemset_ptds
#define cudaMemsetAsync cudaMemsetAsync_ptsz
#define cudaMemset2D cudaMemset2D_ptds
#define cudaMemcpyToSymbol cudaMemcpyToSymbol_ptds
#define cudaMemcpyFromSymbol cudaMemcpyFromSymbol_ptds
#define cudaMallocAsync cudaMallocAsync_ptsz
#define cudaFreeAsync cudaFreeAsync_ptsz
#define cudaStreamSynchronize cudaStreamSynchronize_ptsz
#define cudaStreamQuery cudaStreamQuery_ptsz
#define cudaStreamWaitEvent cudaStreamWaitEvent_ptsz
#define cudaEventRecord cudaEventRecord_ptsz
#define cudaLaunchHostFunc cudaLaunchHostFunc_ptsz
#define cudaLaunchKernel cudaLaunchKernel_ptsz
#define cudaMemset2DAsync cudaMemset2DAsync_ptsz
#define cudaStreamBeginCapture cudaStreamBeginCapture_ptsz
#define cudaStreamEndCapture cudaStreamEndCapture_ptsz
#define cudaGraphLaunch cudaGraphLaunch_ptsz
#endif

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct uint3 {
    unsigned int x, y, z;
};
struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
};

enum { cudaMemAttachGlobal = 1 };

extern "C" {
/* Makes the kernel or variable at a host address known to the runtime, if it is not. */
void stand_in_register_kernel(const void *kernel);
void stand_in_register_variable(const void *variable);
}

template <typename T> cudaError_t cudaMalloc(T **address, size_t bytes)
{
    return cudaMalloc(reinterpret_cast<void **>(address), bytes);
}

template <typename T> cudaError_t cudaMallocHost(T **address, size_t bytes)
{
    return cudaMallocHost(reinterpret_cast<void **>(address), bytes);
}

template <typename T>
cudaError_t cudaMallocManaged(T **address, size_t bytes, unsigned int flags = cudaMemAttachGlobal)
{
    return cudaMallocManaged(reinterpret_cast<void **>(address), bytes, flags);
}

template <typename T>
cudaError_t cudaMallocPitch(T **address, size_t *pitch, size_t width, size_t height)
{
    return cudaMallocPitch(reinterpret_cast<void **>(address), pitch, width, height);
}

template <typename T> cudaError_t cudaMallocAsync(T **address, size_t bytes, cudaStream_t stream)
{
    return cudaMallocAsync(reinterpret_cast<void **>(address), bytes, stream);
}

template <typename T>
cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    const void *variable = &symbol;

    stand_in_register_variable(variable);
    return cudaMemcpyToSymbol(variable, from, bytes, offset, kind);
}

template <typename T>
cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
    const void *variable = &symbol;

    stand_in_register_variable(variable);
    return cudaMemcpyFromSymbol(to, variable, bytes, offset, kind);
}

template <typename T> cudaError_t cudaGetSymbolAddress(void **address, const T &symbol)
{
    const void *variable = &symbol;

    stand_in_register_variable(variable);
    return cudaGetSymbolAddress(address, variable);
}

inline cudaError_t stand_in_add_kernel_node(cudaGraphNode_t *node, cudaGraph_t graph,
                                            const cudaGraphNode_t *before, size_t count,
                                            const cudaKernelNodeParams *params)
{
    stand_in_register_kernel(params->func);
    return cudaGraphAddKernelNode(node, graph, before, count, params);
}
#define cudaGraphAddKernelNode stand_in_add_kernel_node

/* What `kernel<<<grid, block, ...>>>(arguments)` becomes: stand_in_launch(kernel, ...)(arguments).
 */
template <typename... Parameters> struct stand_in_launcher {
    void (*kernel)(Parameters...);
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;

    void operator()(Parameters... values) const
    {
        void *pointers[] = {const_cast<void *>(static_cast<const void *>(&values))..., nullptr};

        stand_in_register_kernel(reinterpret_cast<const void *>(kernel));
        (void)cudaLaunchKernel(reinterpret_cast<const void *>(kernel), grid, block, pointers,
                               shared_bytes, stream);
    }
};

template <typename... Parameters>
stand_in_launcher<Parameters...> stand_in_launch(void (*kernel)(Parameters...), dim3 grid,
                                                 dim3 block, size_t shared_bytes = 0,
                                                 cudaStream_t stream = nullptr)
{
    return {kernel, grid, block, shared_bytes, stream};
}

/* For the bodies of kernels. Nothing of it is defined; being weak, it need not be. */
#define STAND_IN_DEVICE __attribute__((weak))
extern const uint3 threadIdx STAND_IN_DEVICE, blockIdx STAND_IN_DEVICE;
extern const dim3 blockDim STAND_IN_DEVICE, gridDim STAND_IN_DEVICE;
STAND_IN_DEVICE void __syncthreads();
STAND_IN_DEVICE long long clock64();
template <typename T>
STAND_IN_DEVICE T __shfl_xor_sync(unsigned int mask, T value, int lanes, int width = 32);
template <typename T>
STAND_IN_DEVICE T __shfl_down_sync(unsigned int mask, T value, int lanes, int width = 32);
STAND_IN_DEVICE unsigned int __ballot_sync(unsigned int mask, int value);
STAND_IN_DEVICE int __ffs(int value);
template <typename T> STAND_IN_DEVICE T atomicAdd(T *to, T value);
template <typename T> STAND_IN_DEVICE T atomicMax(T *to, T value);
STAND_IN_DEVICE unsigned int atomicInc(unsigned int *counter, unsigned int last);
STAND_IN_DEVICE void __threadfence();
STAND_IN_DEVICE float rsqrtf(float value);
STAND_IN_DEVICE float __fadd_rn(float a, float b);
STAND_IN_DEVICE float __fsub_rn(float a, float b);
STAND_IN_DEVICE float __fmul_rn(float a, float b);
STAND_IN_DEVICE double __dadd_rn(double a, double b);
STAND_IN_DEVICE double __dmul_rn(double a, double b);

#endif
