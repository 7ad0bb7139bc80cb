/*
 * Stands in for NVIDIA's header where nvcc is missing, so that g++ compiles the host code of a CUDA
 * program; see build.sh. Kernels must compile too, but never run: the device code is the PTX that
 * is kept beside the program. A kernel and its PTX are brought together by the name that both
 * compilers give it. C++17. Only what the programs in examples/unmodified use is here.
 */
#ifndef CAPU_TESTS_PTX_STAND_IN_CUDA_RUNTIME_H
#define CAPU_TESTS_PTX_STAND_IN_CUDA_RUNTIME_H

#include <cmath>
#include <cstddef>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__
#define __restrict__ __restrict
#define __launch_bounds__(...)

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
};
struct uint3 {
    unsigned int x, y, z;
};

enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

extern "C" {
cudaError_t cudaMalloc(void **address, size_t bytes);
cudaError_t cudaMallocHost(void **address, size_t bytes);
cudaError_t cudaFree(void *address);
cudaError_t cudaFreeHost(void *address);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemset(void *to, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind);
cudaError_t cudaGetLastError(void);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream);

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
cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    const void *variable = &symbol;

    stand_in_register_variable(variable);
    return cudaMemcpyToSymbol(variable, from, bytes, offset, kind);
}

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

/* For the bodies of kernels. Nothing of it is defined. */
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
void __syncthreads();
template <typename T> T __shfl_xor_sync(unsigned int mask, T value, int lanes, int width = 32);
template <typename T> T __shfl_down_sync(unsigned int mask, T value, int lanes, int width = 32);
template <typename T> T atomicAdd(T *to, T value);
float rsqrtf(float value);

#endif
