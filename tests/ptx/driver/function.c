/* What is known about a function, and how many of its blocks fit a processor. Every call that takes
   a function also takes a kernel. */
#include "tests/ptx/driver/code.h"

enum {
    THREADS_MOST = 2048, /* of a processor */
    BLOCKS_MOST = 32,
    REGISTERS = 65536,
    SHARED_BYTES = 228 << 10,
    SHARED_BYTES_RESERVED = 1 << 10, /* per block */
};

static CUresult get(int *value, CUfunction_attribute attribute, CUfunction handle)
{
    const struct CUfunc_st *function = function_of(handle);
    int capability = driver_settings()->capability;

    if (value == NULL || function == NULL) {
        return value == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)function->machine->threads_most;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)function->machine->shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)function->machine->local_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = (int)function->machine->register_count;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = (int)function->machine->architecture;
        break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = capability;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = (int)(function->dynamic_bytes_most - function->machine->shared_bytes);
        break;
    default:
        *value = 0;
        break;
    }
    return CUDA_SUCCESS;
}

static CUresult set(CUfunction handle, CUfunction_attribute attribute, int value)
{
    struct CUfunc_st *function = function_of(handle);

    if (function == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        uint32_t fixed = function->machine->shared_bytes;

        if (value < 0 || (uint32_t)value + fixed > SHARED_BYTES_MOST) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        function->dynamic_bytes_most = (uint32_t)value + fixed;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    DRIVER_ENTER(driver_enter);
    return get(value, attribute, function);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device)
{
    DRIVER_ENTER(driver_enter);
    return device == 0 ? get(value, attribute, (CUfunction)kernel) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    DRIVER_ENTER(driver_enter);
    return set(function, attribute, value);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device)
{
    DRIVER_ENTER(driver_enter);
    return device == 0 ? set((CUfunction)kernel, attribute, value) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
    (void)config;
    DRIVER_ENTER(driver_enter);
    return function_of(function) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
    (void)device;
    return cuFuncSetCacheConfig((CUfunction)kernel, config);
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    DRIVER_ENTER(driver_enter);
    if (name == NULL || function_of(function) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *name = function_of(function)->machine->name;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    return cuFuncGetName(name, (CUfunction)kernel);
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
    DRIVER_ENTER(driver_enter);
    if (module == NULL || function_of(function) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *module = function_of(function)->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    const struct machine_function *machine;

    DRIVER_ENTER(driver_enter);
    if (function_of(function) == NULL || offset == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    machine = function_of(function)->machine;
    if (index >= machine->parameter_count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *offset = machine->parameters[index].offset;
    if (bytes != NULL) {
        *bytes = machine->parameters[index].bytes;
    }
    return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    return cuFuncGetParamInfo((CUfunction)kernel, index, offset, bytes);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    enum { LOADED = 1 };

    DRIVER_ENTER(driver_enter);
    if (state == NULL || function_of(function) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *state = LOADED;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
    DRIVER_ENTER(driver_enter);
    return function_of(function) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int blocks_that_fit(const struct machine_function *machine, int threads, size_t shared_bytes)
{
    uint64_t registers = (uint64_t)threads * (machine->register_count + 1);
    uint64_t shared = machine->shared_bytes + shared_bytes + SHARED_BYTES_RESERVED;

    if ((uint32_t)threads > machine->threads_most || shared > SHARED_BYTES) {
        return 0;
    }
    return (int)least(
        least(BLOCKS_MOST, THREADS_MOST / (uint64_t)threads),
        least(registers <= REGISTERS ? REGISTERS / registers : 1, SHARED_BYTES / shared));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, CUfunction function,
                                                              int threads, size_t shared_bytes,
                                                              unsigned flags)
{
    (void)flags;
    DRIVER_ENTER(driver_enter);
    if (count == NULL || threads <= 0 || function_of(function) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = blocks_that_fit(function_of(function)->machine, threads, shared_bytes);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction function, int threads,
                                                     size_t shared_bytes)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, threads,
                                                                shared_bytes, 0);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *blocks, int *threads, CUfunction function,
                                          CUoccupancyB2DSize shared_of, size_t shared_bytes,
                                          int limit)
{
    const struct machine_function *machine;
    int best = 0;

    DRIVER_ENTER(driver_enter);
    if (blocks == NULL || threads == NULL || function_of(function) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    machine = function_of(function)->machine;
    *threads = 0;
    for (int size = (int)machine->threads_most / 32 * 32; size > 0; size -= 32) {
        int count;

        if (limit > 0 && size > limit) {
            continue;
        }
        count = blocks_that_fit(machine, size, shared_of != NULL ? shared_of(size) : shared_bytes);
        if (count * size > best * *threads) {
            best = count;
            *threads = size;
        }
    }
    (void)cuDeviceGetAttribute(blocks, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    *blocks *= best;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int blocks,
                                                 int threads)
{
    uint64_t per_block;

    DRIVER_ENTER(driver_enter);
    if (bytes == NULL || blocks <= 0 || threads <= 0 || function_of(function) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    per_block = SHARED_BYTES / (uint64_t)blocks - SHARED_BYTES_RESERVED;
    per_block = least(per_block, function_of(function)->dynamic_bytes_most);
    *bytes = per_block - least(per_block, function_of(function)->machine->shared_bytes);
    return CUDA_SUCCESS;
}
