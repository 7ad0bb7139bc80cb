/*
 * A CUDA driver for tests whose kernels are C functions, found by the names of those in
 * kernels.ptx, and whose device memory is memory of the process. All work is done during the call
 * that asks for it. It checks as little as the tests need.
 */
#include "interpose/shim/driver_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECLARE(name, parameters) DRIVER_EXPORT CUresult name parameters;
#define DECLARE_WRAPPED(name, takers, parameters, arguments) DECLARE(name, parameters)
#define DECLARE_TWICE(name, suffix, takers, parameters, arguments) DECLARE(name, parameters)
DRIVER_WRAPPED(DECLARE_WRAPPED)
DRIVER_WRAPPED_TWICE(DECLARE_TWICE)
DRIVER_CALLED(DECLARE)
DECLARE(cuInit, (unsigned flags))
DECLARE(cuCtxSetCurrent, (CUcontext context))
DECLARE(cuStreamCreate, (CUstream * stream, unsigned flags))
DECLARE(cuEventCreate, (CUevent * event, unsigned flags))
DECLARE(cuEventSynchronize, (CUevent event))
DECLARE(cuEventElapsedTime, (float *ms, CUevent from, CUevent to))
DECLARE(cuMemAllocHost_v2, (void **address, size_t bytes))

enum { MOST = 64, TOTAL_BYTES = 64 << 20 };

/* Of the device, and of pinned host memory. */
static struct memory {
    uint64_t address;
    size_t bytes;
    unsigned type;
} memories[MOST];

static size_t used_bytes;

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static struct memory *find(uint64_t address)
{
    for (int i = 0; i < MOST; i++) {
        if (memories[i].bytes > 0 && address - memories[i].address < memories[i].bytes) {
            return &memories[i];
        }
    }
    return NULL;
}

static CUresult allocate(uint64_t *address, size_t bytes, unsigned type)
{
    for (int i = 0; i < MOST; i++) {
        if (memories[i].bytes == 0 && bytes > 0) {
            void *memory = NULL;

            if (bytes > TOTAL_BYTES - used_bytes || posix_memalign(&memory, 512, bytes) != 0) {
                return DRIVER_OUT_OF_MEMORY;
            }
            memset(memory, 0, bytes);
            memories[i] = (struct memory){(uintptr_t)memory, bytes, type};
            *address = memories[i].address;
            used_bytes += bytes;
            return DRIVER_SUCCESS;
        }
    }
    return DRIVER_INVALID_VALUE;
}

CUresult cuInit(unsigned flags)
{
    return flags == 0 ? DRIVER_SUCCESS : DRIVER_INVALID_VALUE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = pointer(1);
    return device == 0 ? DRIVER_SUCCESS : DRIVER_INVALID_DEVICE;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    (void)context;
    return DRIVER_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = pointer(1);
    return DRIVER_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return DRIVER_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    return DRIVER_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = TOTAL_BYTES;
    return DRIVER_SUCCESS;
}

/* Compute capability 8.0. */
CUresult cuDeviceGetAttribute(int *value, unsigned attribute, CUdevice device)
{
    (void)device;
    *value = attribute == DRIVER_CAPABILITY_MAJOR ? 8 : 0;
    return DRIVER_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    uint64_t taken = 0;
    CUresult result = allocate(&taken, bytes, MEMORY_DEVICE);

    if (result == DRIVER_SUCCESS) {
        *address = taken;
    }
    return result;
}

CUresult cuMemAllocHost_v2(void **address, size_t bytes)
{
    uint64_t taken = 0;
    CUresult result = allocate(&taken, bytes, MEMORY_HOST);

    *address = pointer(taken);
    return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned element)
{
    (void)element;
    *pitch = (width + 511) / 512 * 512;
    return cuMemAlloc_v2(address, *pitch * height);
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemAlloc_v2(address, bytes);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    struct memory *memory = find(address);

    if (address == 0) {
        return DRIVER_SUCCESS;
    }
    if (memory == NULL || memory->address != address) {
        return DRIVER_INVALID_VALUE;
    }
    used_bytes -= memory->bytes;
    memory->bytes = 0;
    free(pointer(address));
    return DRIVER_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    (void)stream;
    return cuMemFree_v2(address);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    if (free_bytes != NULL) {
        *free_bytes = TOTAL_BYTES - used_bytes;
    }
    *total_bytes = TOTAL_BYTES;
    return DRIVER_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    const struct memory *memory = find(address);

    if (memory == NULL) {
        return DRIVER_NOT_FOUND;
    }
    *base = memory->address;
    *bytes = memory->bytes;
    return DRIVER_SUCCESS;
}

CUresult cuPointerGetAttribute(void *value, unsigned attribute, CUdeviceptr address)
{
    const struct memory *memory = find(address);

    if (memory == NULL) {
        return DRIVER_INVALID_VALUE;
    }
    if (attribute == POINTER_MEMORY_TYPE) {
        *(unsigned *)value = memory->type;
    } else if (attribute == POINTER_RANGE_START) {
        *(CUdeviceptr *)value = memory->address;
    } else if (attribute == POINTER_RANGE_SIZE) {
        *(size_t *)value = memory->bytes;
    } else {
        return DRIVER_INVALID_VALUE;
    }
    return DRIVER_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, unsigned *attributes, void **values,
                                CUdeviceptr address)
{
    for (unsigned i = 0; i < count; i++) {
        CUresult result = cuPointerGetAttribute(values[i], attributes[i], address);

        if (result != DRIVER_SUCCESS) {
            return result;
        }
    }
    return DRIVER_SUCCESS;
}

/* Copies beyond the end of device memory are refused. */
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    const struct memory *memory = find(to);

    (void)stream;
    if (memory != NULL && to + bytes > memory->address + memory->bytes) {
        return DRIVER_INVALID_VALUE;
    }
    memcpy(pointer(to), pointer(from), bytes);
    return DRIVER_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return cuMemcpyAsync(to, (uintptr_t)from, bytes, NULL);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return cuMemcpyAsync(to, (uintptr_t)from, bytes, stream);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return cuMemcpyAsync((uintptr_t)to, from, bytes, NULL);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return cuMemcpyAsync((uintptr_t)to, from, bytes, stream);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return cuMemcpyAsync(to, from, bytes, NULL);
}

CUresult cuMemcpy2DAsync_v2(const struct copy_2d *copy, CUstream stream)
{
    uint64_t to = copy->to_type == MEMORY_HOST ? (uintptr_t)copy->to_host : copy->to_device;
    uint64_t from = copy->from_type == MEMORY_HOST ? (uintptr_t)copy->from_host : copy->from_device;

    (void)stream;
    for (size_t y = 0; y < copy->height; y++) {
        memcpy(pointer(to + (copy->to_y + y) * copy->to_pitch + copy->to_x),
               pointer(from + (copy->from_y + y) * copy->from_pitch + copy->from_x), copy->width);
    }
    return DRIVER_SUCCESS;
}

CUresult cuMemcpy2D_v2(const struct copy_2d *copy)
{
    return cuMemcpy2DAsync_v2(copy, NULL);
}

#define FILL(bits, type)                                                                       \
    CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width,  \
                                      size_t height, CUstream stream)                          \
    {                                                                                          \
        (void)stream;                                                                          \
        for (size_t y = 0; y < height; y++) {                                                  \
            for (size_t x = 0; x < width; x++) {                                               \
                ((type *)pointer(to + y * pitch))[x] = value;                                  \
            }                                                                                  \
        }                                                                                      \
        return DRIVER_SUCCESS;                                                                 \
    }                                                                                          \
    CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width,    \
                                    size_t height)                                             \
    {                                                                                          \
        return cuMemsetD2D##bits##Async(to, pitch, value, width, height, NULL);                \
    }                                                                                          \
    CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) \
    {                                                                                          \
        return cuMemsetD2D##bits##Async(to, 0, value, count, 1, stream);                       \
    }                                                                                          \
    CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count)                    \
    {                                                                                          \
        return cuMemsetD2D##bits##Async(to, 0, value, count, 1, NULL);                         \
    }

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    static int streams;

    (void)flags;
    *stream = pointer((uint64_t)(0x100 + ++streams));
    return DRIVER_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    return DRIVER_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)stream;
    (void)flags;
    return event != NULL ? DRIVER_SUCCESS : DRIVER_INVALID_VALUE;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, 8);
    return DRIVER_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)stream;
    *(int *)(void *)event = 1;
    return DRIVER_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event)
{
    return event != NULL ? DRIVER_SUCCESS : DRIVER_INVALID_VALUE;
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    *ms = 0.0f;
    return *(int *)(void *)from == 1 && *(int *)(void *)to == 1 ? DRIVER_SUCCESS
                                                                : DRIVER_INVALID_VALUE;
}

static void run_scale(void **parameters)
{
    float *to = pointer(*(uint64_t *)parameters[0]);
    const float *from = pointer(*(uint64_t *)parameters[1]);

    for (int i = 0; i < *(int *)parameters[3]; i++) {
        to[i] = from[i] * *(float *)parameters[2] + 1.0f;
    }
}

static void run_add(void **parameters)
{
    float *to = pointer(*(uint64_t *)parameters[0]);
    const float *from = pointer(*(uint64_t *)parameters[1]);

    for (int i = 0; i < *(int *)parameters[2]; i++) {
        to[i] += from[i];
    }
}

static void run_through_table(void **parameters)
{
    const uint64_t *table = pointer(*(uint64_t *)parameters[0]);

    *(float *)pointer(table[0]) = *(float *)parameters[1];
}

static void run_spin(void **parameters)
{
    (void)parameters;
}

static const struct CUfunc_st {
    const char *name;
    void (*run)(void **parameters);
    uint32_t offsets[5]; /* of the parameters in their block */
} functions[] = {
    {"scale", run_scale, {0, 8, 16, 20}},
    {"add", run_add, {0, 8, 16}},
    {"through_table", run_through_table, {0, 8}},
    {"spin", run_spin, {0}},
};

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    *module = pointer(0x7000);
    return memcmp(image, ".version", 8) == 0 ? DRIVER_SUCCESS : DRIVER_INVALID_VALUE;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (strcmp(functions[i].name, name) == 0) {
            *function = (CUfunction)&functions[i];
            return DRIVER_SUCCESS;
        }
    }
    return DRIVER_NOT_FOUND;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    *name = function->name;
    return DRIVER_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **parameters, void **extra)
{
    void *own[5];

    (void)grid_y;
    (void)grid_z;
    (void)block_y;
    (void)block_z;
    (void)shared_bytes;
    (void)stream;
    if (grid_x == 0 || block_x > 1024) {
        return DRIVER_INVALID_VALUE;
    }
    for (int i = 0; extra != NULL && i < 5; i++) {
        own[i] = (unsigned char *)extra[1] + function->offsets[i];
    }
    function->run(parameters != NULL ? parameters : own);
    return DRIVER_SUCCESS;
}

CUresult cuLaunchKernelEx(const struct launch_config *config, CUfunction function,
                          void **parameters, void **extra)
{
    return cuLaunchKernel(function, config->grid[0], 1, 1, config->block[0], 1, 1, 0,
                          config->stream, parameters, extra);
}
