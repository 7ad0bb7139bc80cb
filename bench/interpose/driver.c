/*
 * A CUDA driver that does nothing, for measuring what the shim costs: its calls return at once.
 * Memory is host memory where something reads it. The launch of an address slice stores what the
 * slice of the bench's kernels would: a range of RANGE_BYTES from each pointer.
 */
#include "bench/interpose/driver.h"
#include "interpose/slice/slice.h"
#include "shim/driver/driver_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL(name, parameters)              \
    DRIVER_EXPORT CUresult name parameters; \
    CUresult name parameters

/* A function is its name. */
struct CUfunc_st {
    char name[64];
    struct CUfunc_st *next;
};

static int anything; /* what other handles point to */
static struct CUfunc_st *functions;

CALL(cuInit, (unsigned flags))
{
    return flags == 0 ? DRIVER_SUCCESS : DRIVER_INVALID_VALUE;
}

CALL(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))
{
    *context = (CUcontext)&anything;
    return device == 0 ? DRIVER_SUCCESS : DRIVER_INVALID_DEVICE;
}

CALL(cuCtxGetCurrent, (CUcontext * context))
{
    *context = (CUcontext)&anything;
    return DRIVER_SUCCESS;
}

CALL(cuCtxSetCurrent, (CUcontext context))
{
    (void)context;
    return DRIVER_SUCCESS;
}

CALL(cuCtxGetDevice, (CUdevice * device))
{
    *device = 0;
    return DRIVER_SUCCESS;
}

CALL(cuCtxSynchronize, (void))
{
    return DRIVER_SUCCESS;
}

CALL(cuDeviceGetAttribute, (int *value, unsigned attribute, CUdevice device))
{
    (void)device;
    *value = attribute == DRIVER_CAPABILITY_MAJOR ? 9 : 0;
    return DRIVER_SUCCESS;
}

CALL(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))
{
    (void)device;
    *bytes = (size_t)1 << 40;
    return DRIVER_SUCCESS;
}

CALL(cuModuleLoadData, (CUmodule * module, const void *image))
{
    *module = (CUmodule)(uintptr_t)image;
    return DRIVER_SUCCESS;
}

CALL(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))
{
    (void)module;
    *function = calloc(1, sizeof(**function));
    if (*function == NULL) {
        return DRIVER_OUT_OF_MEMORY;
    }
    snprintf((*function)->name, sizeof((*function)->name), "%s", name);
    (*function)->next = functions; /* never freed, as a driver's */
    functions = *function;
    return DRIVER_SUCCESS;
}

CALL(cuFuncGetName, (const char **name, CUfunction function))
{
    *name = function->name;
    return DRIVER_SUCCESS;
}

/* Without the shim, what is allocated is never touched. */
CALL(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))
{
    *address = (uintptr_t)malloc(bytes);
    return *address != 0 ? DRIVER_SUCCESS : DRIVER_OUT_OF_MEMORY;
}

CALL(cuMemAllocHost_v2, (void **address, size_t bytes))
{
    *address = malloc(bytes);
    return *address != NULL ? DRIVER_SUCCESS : DRIVER_OUT_OF_MEMORY;
}

CALL(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return DRIVER_SUCCESS;
}

CALL(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))
{
    (void)stream;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return DRIVER_SUCCESS;
}

CALL(cuCtxGetStreamPriorityRange, (int *least, int *greatest))
{
    *least = 0;
    *greatest = 0;
    return DRIVER_SUCCESS;
}

CALL(cuStreamCreate, (CUstream * stream, unsigned flags))
{
    (void)flags;
    *stream = (CUstream)&anything;
    return DRIVER_SUCCESS;
}

CALL(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority))
{
    (void)flags;
    (void)priority;
    *stream = (CUstream)&anything;
    return DRIVER_SUCCESS;
}

CALL(cuStreamSynchronize, (CUstream stream))
{
    (void)stream;
    return DRIVER_SUCCESS;
}

/* The slice's block ends with where the results go; the kernel's pointers come first. */
static void store_ranges(unsigned count, const unsigned char *block, size_t bytes)
{
    struct slice_result *results;
    uint64_t at;

    memcpy(&at, block + bytes - sizeof(at), sizeof(at));
    results = (struct slice_result *)(uintptr_t)at;
    for (unsigned i = 0; i < count; i++) {
        memcpy(&at, block + i * sizeof(at), sizeof(at));
        results[i] = (struct slice_result){at, at + RANGE_BYTES};
    }
}

CALL(cuLaunchKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      CUstream stream, void **parameters, void **extra))
{
    unsigned count;

    (void)grid_x;
    (void)grid_y;
    (void)grid_z;
    (void)block_x;
    (void)block_y;
    (void)block_z;
    (void)shared_bytes;
    (void)stream;
    (void)parameters;
    if (extra != NULL && sscanf(function->name, "take%u_slice", &count) == 1) {
        store_ranges(count, extra[1], *(const size_t *)extra[3]);
    }
    return DRIVER_SUCCESS;
}
