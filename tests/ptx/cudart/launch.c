/* Launches, and what is known about a kernel. */
#include "tests/ptx/cudart/code.h"

#include <string.h>

enum { CONFIGURATIONS = 8 };

struct configuration {
    dim3 grid;
    dim3 block;
    size_t shared_bytes;
    cudaStream_t stream;
};

static _Thread_local struct configuration configurations[CONFIGURATIONS];
static _Thread_local int depth;

CUDART_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                                struct CUstream_st *stream);
CUDART_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes,
                                                  void *stream);
CUDART_API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
CUDART_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                                          size_t shared_bytes, cudaStream_t stream);
CUDART_API cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                               void **args, size_t shared_bytes,
                                               cudaStream_t stream);

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream)
{
    if (depth == CONFIGURATIONS) {
        return 1;
    }
    configurations[depth++] = (struct configuration){grid, block, shared_bytes, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    const struct configuration *last;

    if (depth == 0) {
        return cudart_leave(cudaErrorMissingConfiguration);
    }
    last = &configurations[--depth];
    *grid = last->grid;
    *block = last->block;
    *shared_bytes = last->shared_bytes;
    *(cudaStream_t *)stream = last->stream;
    return cudaSuccess;
}

/* Errors of the driver that the runtime calls otherwise at a launch. */
static cudaError_t leave_launch(CUresult result)
{
    return cudart_leave(result == CUDA_ERROR_INVALID_VALUE ? (int)cudaErrorInvalidConfiguration
                                                           : (int)result);
}

static cudaError_t launch(CUkernel kernel, const struct configuration *how, void **args)
{
    return leave_launch(cudart_driver()->cuLaunchKernel(
        (CUfunction)kernel, how->grid.x, how->grid.y, how->grid.z, how->block.x, how->block.y,
        how->block.z, (unsigned)how->shared_bytes, how->stream, args, NULL));
}

/* nvcc's code asks once per kernel and keeps what it got, also after an error. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    CUDART_ENTER();
    return cudart_leave(code_kernel(function, kernel));
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared_bytes, cudaStream_t stream)
{
    const struct configuration how = {grid, block, shared_bytes, stream};

    CUDART_ENTER();
    if (kernel == NULL) {
        return cudart_leave(cudaErrorInvalidDeviceFunction);
    }
    return launch(kernel, &how, args);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                                    size_t shared_bytes, cudaStream_t stream)
{
    cudaError_t error;

    cudart_is_per_thread = true;
    error = __cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
    cudart_is_per_thread = false;
    return error;
}

/* Enters, and looks up a kernel. */
#define ENTER_KERNEL(function, kernel)              \
    do {                                            \
        cudaError_t found_;                         \
                                                    \
        CUDART_ENTER();                             \
        found_ = code_kernel((function), (kernel)); \
        if (found_ != cudaSuccess) {                \
            return cudart_leave(found_);            \
        }                                           \
    } while (0)

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
                             size_t shared_bytes, cudaStream_t stream)
{
    const struct configuration how = {grid, block, shared_bytes, stream};
    CUkernel kernel;

    ENTER_KERNEL(function, &kernel);
    return launch(kernel, &how, args);
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **args,
                                        size_t shared_bytes, cudaStream_t stream)
{
    CUkernel kernel;

    ENTER_KERNEL(function, &kernel);
    return leave_launch(cudart_driver()->cuLaunchCooperativeKernel(
        (CUfunction)kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
        (unsigned)shared_bytes, stream, args));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **args)
{
    CUlaunchConfig how;
    CUkernel kernel;

    ENTER_KERNEL(function, &kernel);
    if (config == NULL) {
        return cudart_leave(cudaErrorInvalidValue);
    }
    how = (CUlaunchConfig){
        .gridDimX = config->gridDim.x,
        .gridDimY = config->gridDim.y,
        .gridDimZ = config->gridDim.z,
        .blockDimX = config->blockDim.x,
        .blockDimY = config->blockDim.y,
        .blockDimZ = config->blockDim.z,
        .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
        .hStream = config->stream,
        .attrs = config->attrs,
        .numAttrs = config->numAttrs,
    };
    return leave_launch(cudart_driver()->cuLaunchKernelEx(&how, (CUfunction)kernel, args, NULL));
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    return __cudaGetKernel(kernel, function);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
    CUkernel kernel;

    ENTER_KERNEL(symbol, &kernel);
    return cudart_leave((int)cudart_driver()->cuKernelGetFunction(function, kernel));
}

static int attribute(CUkernel kernel, CUfunction_attribute which)
{
    int value = 0;

    (void)cudart_driver()->cuKernelGetAttribute(&value, which, kernel, 0);
    return value;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    CUkernel kernel;

    ENTER_KERNEL(function, &kernel);
    memset(attributes, 0, sizeof(*attributes));
    attributes->sharedSizeBytes = (size_t)attribute(kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    attributes->localSizeBytes = (size_t)attribute(kernel, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    attributes->maxThreadsPerBlock = attribute(kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attributes->numRegs = attribute(kernel, CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes->ptxVersion = attribute(kernel, CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes->binaryVersion = attribute(kernel, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes->maxDynamicSharedSizeBytes =
        attribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute which, int value)
{
    CUkernel kernel;

    ENTER_KERNEL(function, &kernel);
    return cudart_leave(
        (int)cudart_driver()->cuKernelSetAttribute((CUfunction_attribute)which, value, kernel, 0));
}

cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config)
{
    CUkernel kernel;

    ENTER_KERNEL(function, &kernel);
    return cudart_leave(
        (int)cudart_driver()->cuKernelSetCacheConfig(kernel, (CUfunc_cache)config, 0));
}

cudaError_t cudaFuncGetName(const char **name, const void *function)
{
    CUkernel kernel;

    ENTER_KERNEL(function, &kernel);
    return cudart_leave((int)cudart_driver()->cuKernelGetName(name, kernel));
}

cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *bytes)
{
    CUkernel kernel;

    ENTER_KERNEL(function, &kernel);
    return cudart_leave((int)cudart_driver()->cuKernelGetParamInfo(kernel, index, offset, bytes));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, const void *function,
                                                                   int threads, size_t shared_bytes,
                                                                   unsigned int flags)
{
    CUkernel kernel;

    ENTER_KERNEL(function, &kernel);
    return cudart_leave((int)cudart_driver()->cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count, (CUfunction)kernel, threads, shared_bytes, flags));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count, const void *function,
                                                          int threads, size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, threads,
                                                                  shared_bytes, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function,
                                                      int blocks, int threads)
{
    CUkernel kernel;

    ENTER_KERNEL(function, &kernel);
    return cudart_leave((int)cudart_driver()->cuOccupancyAvailableDynamicSMemPerBlock(
        bytes, (CUfunction)kernel, blocks, threads));
}
