/*
 * A CUDA driver for tests, that computes nothing: it has a few of the driver's functions, gives
 * them by name, version and flags as the real one does, and lets tests see what arrived.
 */
#include "tests/ptx/include/driver_types.h"

#include <string.h>

/* What tests/ptx/include does not declare. */
DRIVER_API CUresult cuMemGetInfo(unsigned *free, unsigned *total);
DRIVER_API CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr at, cuuint32_t value,
                                           unsigned flags);
DRIVER_API CUresult cuIpcGetMemHandle(void *handle, CUdeviceptr of);
DRIVER_API int cuTexRefSetMipmapLevelBias(void *texture, float bias);
DRIVER_API int cuTexRefSetMipmapLevelClamp(void *texture, float least, float most);

/* Numbers that no other function returns. */
enum { QUERIED = 4001, QUERIED_PER_THREAD = 4002, WAITED = 4003, CREATED = 4004 };

CUresult cuInit(unsigned flags)
{
    return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(unsigned *free, unsigned *total)
{
    *free = 1;
    *total = 2;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    *free = (size_t)3 << 40;
    *total = (size_t)4 << 40;
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream)
{
    (void)stream;
    return (CUresult)QUERIED;
}

CUresult cuStreamQuery_ptsz(CUstream stream)
{
    (void)stream;
    return (CUresult)QUERIED_PER_THREAD;
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags)
{
    (void)stream;
    (void)at;
    (void)value;
    (void)flags;
    return (CUresult)WAITED;
}

CUresult cuIpcGetMemHandle(void *handle, CUdeviceptr of)
{
    return handle != NULL && of != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int cuTexRefSetMipmapLevelBias(void *texture, float bias)
{
    return texture == NULL ? (int)(bias * 1000.0F) : 1;
}

int cuTexRefSetMipmapLevelClamp(void *texture, float least, float most)
{
    return texture == NULL ? (int)(least * 1000.0F + most) : 1;
}

/* A number in which each argument has a digit of its own. */
CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
                        void **parameters, void **extra)
{
    return (CUresult)(x + 10 * y + 100 * z + 1000 * block_x + 10000 * block_y + 100000 * block_z +
                      1000000 * shared + (function != NULL ? 10000000 : 0) +
                      (stream != NULL ? 20000000 : 0) + (parameters != NULL ? 40000000 : 0) +
                      (extra != NULL ? 80000000 : 0));
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (device < 0 || device > 1) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *context = (CUcontext)(uintptr_t)(0x1000 + device);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    (void)context;
    (void)flags;
    (void)device;
    return (CUresult)CREATED;
}

/* What there is: since which version, and whether for per-thread default streams. */
static const struct {
    const char *name;
    void *function;
    int version;
    int is_per_thread;
} entries[] = {
    {"cuInit", cuInit, 2000, 0},
    {"cuDriverGetVersion", cuDriverGetVersion, 2020, 0},
    {"cuMemGetInfo", cuMemGetInfo, 2000, 0},
    {"cuMemGetInfo", cuMemGetInfo_v2, 3020, 0},
    {"cuStreamQuery", cuStreamQuery, 2000, 0},
    {"cuStreamQuery", cuStreamQuery_ptsz, 7000, 1},
    {"cuStreamWaitValue32", cuStreamWaitValue32_v2, 11070, 0},
    {"cuIpcGetMemHandle", cuIpcGetMemHandle, 4010, 0},
    {"cuLaunchKernel", cuLaunchKernel, 4000, 0},
    {"cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain, 7000, 0},
    {"cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease_v2, 11000, 0},
    {"cuCtxCreate", cuCtxCreate_v2, 3020, 0},
    {"cuGetProcAddress", cuGetProcAddress, 11030, 0},
    {"cuGetProcAddress", cuGetProcAddress_v2, 12000, 0},
};

/* The newest variant that is not newer than asked for; one per thread before one that is not. */
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    int best = -1;
    int is_known = 0;

    for (int i = 0; i < (int)(sizeof(entries) / sizeof(entries[0])); i++) {
        if (strcmp(entries[i].name, symbol) != 0 ||
            (entries[i].is_per_thread && flags != CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)) {
            continue;
        }
        is_known = 1;
        if (entries[i].version <= version &&
            (best < 0 || entries[i].is_per_thread > entries[best].is_per_thread ||
             (entries[i].is_per_thread == entries[best].is_per_thread &&
              entries[i].version > entries[best].version))) {
            best = i;
        }
    }
    *function = best < 0 ? NULL : entries[best].function;
    if (status != NULL) {
        *status = best >= 0  ? CU_GET_PROC_ADDRESS_SUCCESS
                  : is_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                             : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return best < 0 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status;

    return cuGetProcAddress_v2(symbol, function, version, flags, &status);
}
