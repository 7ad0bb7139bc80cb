/*
 * A CUDA driver for tests, that computes nothing: it has a few of the driver's functions, gives
 * them by name, version and flags as the real one does, and lets tests see what arrived.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef unsigned long long address;

EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuMemGetInfo(unsigned *free, unsigned *total);
EXPORT int cuMemGetInfo_v2(size_t *free, size_t *total);
EXPORT int cuStreamQuery(void *stream);
EXPORT int cuStreamQuery_ptsz(void *stream);
EXPORT int cuStreamWaitValue32_v2(void *stream, address at, uint32_t value, unsigned flags);
EXPORT int cuIpcGetMemHandle(void *handle, address of);
EXPORT int cuTexRefSetMipmapLevelBias(void *texture, float bias);
EXPORT int cuTexRefSetMipmapLevelClamp(void *texture, float least, float most);
EXPORT int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared, void *stream,
                          void **parameters, void **extra);
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device);
EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
EXPORT int cuCtxCreate_v2(void **context, unsigned flags, int device);
EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                               int *status);
EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);

/* Numbers that no other function returns. */
enum { QUERIED = 4001, QUERIED_PER_THREAD = 4002, WAITED = 4003, CREATED = 4004 };

int cuInit(unsigned flags)
{
    return flags == 0 ? 0 : 1;
}

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

int cuMemGetInfo(unsigned *free, unsigned *total)
{
    *free = 1;
    *total = 2;
    return 0;
}

int cuMemGetInfo_v2(size_t *free, size_t *total)
{
    *free = (size_t)3 << 40;
    *total = (size_t)4 << 40;
    return 0;
}

int cuStreamQuery(void *stream)
{
    (void)stream;
    return QUERIED;
}

int cuStreamQuery_ptsz(void *stream)
{
    (void)stream;
    return QUERIED_PER_THREAD;
}

int cuStreamWaitValue32_v2(void *stream, address at, uint32_t value, unsigned flags)
{
    (void)stream;
    (void)at;
    (void)value;
    (void)flags;
    return WAITED;
}

int cuIpcGetMemHandle(void *handle, address of)
{
    return handle != NULL && of != 0 ? 0 : 1;
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
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream,
                   void **parameters, void **extra)
{
    return (int)(x + 10 * y + 100 * z + 1000 * block_x + 10000 * block_y + 100000 * block_z +
                 1000000 * shared + (function != NULL ? 10000000 : 0) +
                 (stream != NULL ? 20000000 : 0) + (parameters != NULL ? 40000000 : 0) +
                 (extra != NULL ? 80000000 : 0));
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    if (device < 0 || device > 1) {
        return 101;
    }
    *context = (void *)(uintptr_t)(0x1000 + device);
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    return 0;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    (void)context;
    (void)flags;
    (void)device;
    return CREATED;
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
int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                        int *status)
{
    int best = -1;
    int is_known = 0;

    for (int i = 0; i < (int)(sizeof(entries) / sizeof(entries[0])); i++) {
        if (strcmp(entries[i].name, symbol) != 0 || (entries[i].is_per_thread && flags != 2)) {
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
        *status = best >= 0 ? 0 : is_known ? 2 : 1;
    }
    return best < 0 ? 500 : 0;
}

int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    int status;

    return cuGetProcAddress_v2(symbol, function, version, flags, &status);
}
