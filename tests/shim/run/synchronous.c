/*
 * When copies and memsets return: a line for each row of CUDA's rules on the synchronisation of its
 * functions ("API synchronization behavior" of the runtime's reference). Before each call that has
 * to wait, work is enqueued that takes a while; when the call returns, that must have ended, and
 * what was copied or set must be there. With the argument "passing", calls that must not wait:
 * before each, work is enqueued that ends only after it.
 */
#include "shim/driver/driver_calls.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 8192, WIDTH = 64, HEIGHT = 16, PAUSE_US = 30000 };

static void *library;
static unsigned char *pageable, *pinned, *other, *managed, *device, *source;

static void *find(const char *name)
{
    void *function = dlsym(library, name);

    if (function == NULL) {
        printf("%s\n", dlerror());
        exit(3);
    }
    return function;
}

static void check(CUresult result, const char *what)
{
    if (result != DRIVER_SUCCESS) {
        printf("%s: error %d\n", what, result);
        exit(1);
    }
}

#define CALL(name, parameters, ...) check(((CUresult(*) parameters)find(#name))(__VA_ARGS__), #name)
#define ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

static bool has_ended; /* atomic: the work before the call */
static sem_t may_end;

static void take_time(void *unused)
{
    (void)unused;
    (void)usleep(PAUSE_US);
    __atomic_store_n(&has_ended, true, __ATOMIC_RELEASE);
}

static void wait_for_caller(void *unused)
{
    (void)unused;
    while (sem_wait(&may_end) != 0) { /* interrupted */
    }
}

static void enqueue(void (*function)(void *))
{
    __atomic_store_n(&has_ended, false, __ATOMIC_RELEASE);
    CALL(cuLaunchHostFunc, (CUstream, void (*)(void *), void *), NULL, function, NULL);
}

static void set(void *to, int value)
{
    CALL(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t), ADDRESS(to), (unsigned char)value,
         BYTES);
}

static void copy(void *to, const void *from)
{
    CALL(cuMemcpy, (CUdeviceptr, CUdeviceptr, size_t), ADDRESS(to), ADDRESS(from), BYTES);
}

static void copy_async(void *to, const void *from)
{
    CALL(cuMemcpyAsync, (CUdeviceptr, CUdeviceptr, size_t, CUstream), ADDRESS(to), ADDRESS(from),
         BYTES, NULL);
}

static struct copy_2d flat(void *to, const void *from)
{
    return (struct copy_2d){.from_type = MEMORY_DEVICE,
                            .from_device = ADDRESS(from),
                            .from_pitch = 2 * WIDTH,
                            .to_type = MEMORY_HOST,
                            .to_host = to,
                            .to_pitch = WIDTH,
                            .width = WIDTH,
                            .height = HEIGHT};
}

/* The rows. */
static void set_pinned(void)
{
    set(pinned, 5);
}

static void set_rows_pinned(void)
{
    CALL(cuMemsetD2D32_v2, (CUdeviceptr, size_t, unsigned, size_t, size_t), ADDRESS(pinned),
         2 * WIDTH, 0x05050505, WIDTH / 4, HEIGHT);
}

static void set_managed(void)
{
    set(managed, 5);
}

static void pinned_to_device(void)
{
    copy(device, source);
}

static void device_to_pageable(void)
{
    copy(pageable, device);
}

static void device_to_pinned(void)
{
    copy(pinned, device);
}

static void device_to_managed(void)
{
    copy(managed, device);
}

static void rows_to_pageable(void)
{
    struct copy_2d rows = flat(pageable, device);

    CALL(cuMemcpy2D_v2, (const struct copy_2d *), &rows);
}

static void rows_to_pinned(void)
{
    struct copy_2d rows = flat(pinned, device);

    CALL(cuMemcpy2D_v2, (const struct copy_2d *), &rows);
}

static void box_to_pinned(void)
{
    struct copy_3d box = {.from_type = MEMORY_DEVICE,
                          .from_device = ADDRESS(device),
                          .from_pitch = 2 * WIDTH,
                          .from_height = HEIGHT,
                          .to_type = MEMORY_HOST,
                          .to_host = pinned,
                          .to_pitch = WIDTH,
                          .to_height = HEIGHT,
                          .width = WIDTH,
                          .height = HEIGHT,
                          .depth = 1};

    CALL(cuMemcpy3D_v2, (const struct copy_3d *), &box);
}

static void pinned_to_pinned(void)
{
    copy(pinned, source);
}

static void pinned_to_pinned_async(void)
{
    copy_async(pinned, source);
}

static void pageable_to_pageable(void)
{
    memcpy(other, source, BYTES);
    copy(pageable, other);
}

static void pinned_to_device_async(void)
{
    copy_async(device, source);
}

static void device_to_pinned_async(void)
{
    copy_async(pinned, device);
}

static void device_to_device_async(void)
{
    copy_async(device + BYTES, device);
}

static void set_pinned_async(void)
{
    CALL(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream), ADDRESS(pinned), 5, BYTES,
         NULL);
}

static void set_device(void)
{
    set(device, 5);
}

struct row {
    const char *name;
    void (*call)(void);
    unsigned char **host; /* where the result is to be seen by the host; NULL: nowhere */
};

static const struct row waiting[] = {
    {"memset of pinned memory", set_pinned, &pinned},
    {"memset of rows of pinned memory", set_rows_pinned, &pinned},
    {"memset of managed memory", set_managed, &managed},
    {"copy from pinned memory to the device", pinned_to_device, NULL},
    {"copy from the device to pageable memory", device_to_pageable, &pageable},
    {"copy from the device to pinned memory", device_to_pinned, &pinned},
    {"copy from the device to managed memory", device_to_managed, &managed},
    {"copy of rows to pageable memory", rows_to_pageable, &pageable},
    {"copy of rows to pinned memory", rows_to_pinned, &pinned},
    {"copy of a box to pinned memory", box_to_pinned, &pinned},
    {"copy within pinned memory", pinned_to_pinned, &pinned},
    {"copy within pageable memory", pageable_to_pageable, &pageable},
    {"asynchronous copy within pinned memory", pinned_to_pinned_async, &pinned},
};

static const struct row passing[] = {
    {"asynchronous copy from pinned memory", pinned_to_device_async, NULL},
    {"asynchronous copy to pinned memory", device_to_pinned_async, &pinned},
    {"asynchronous copy on the device", device_to_device_async, NULL},
    {"asynchronous memset of pinned memory", set_pinned_async, &pinned},
    {"memset of memory of the device", set_device, NULL},
};

static void prepare(const struct row *row)
{
    CALL(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t), ADDRESS(device), 5,
         (size_t)2 * BYTES);
    CALL(cuCtxSynchronize, (void));
    if (row->host != NULL) {
        memset(*row->host, 1, BYTES);
    }
}

static int seen(const struct row *row)
{
    return row->host != NULL ? (*row->host)[WIDTH / 2] : 5;
}

int main(int argc, char **argv)
{
    bool passes = argc > 1 && strcmp(argv[1], "passing") == 0;
    CUcontext context = NULL;
    CUdeviceptr address = 0;

    library = dlopen("libcuda.so.1", RTLD_NOW);
    pageable = malloc(BYTES);
    other = malloc(BYTES);
    if (library == NULL || pageable == NULL || other == NULL || sem_init(&may_end, 0, 0) != 0) {
        return 3;
    }
    CALL(cuInit, (unsigned), 0);
    CALL(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice), &context, 0);
    CALL(cuCtxSetCurrent, (CUcontext), context);
    CALL(cuMemAlloc_v2, (CUdeviceptr *, size_t), &address, (size_t)2 * BYTES);
    device = (unsigned char *)(uintptr_t)address;
    CALL(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned), &address, BYTES, 1);
    managed = (unsigned char *)(uintptr_t)address;
    CALL(cuMemAllocHost_v2, (void **, size_t), (void **)&pinned, BYTES);
    CALL(cuMemAllocHost_v2, (void **, size_t), (void **)&source, BYTES);
    memset(source, 5, BYTES);
    for (size_t i = 0; !passes && i < sizeof(waiting) / sizeof(waiting[0]); i++) {
        prepare(&waiting[i]);
        enqueue(take_time);
        waiting[i].call();
        printf("%s: %d %d\n", waiting[i].name, __atomic_load_n(&has_ended, __ATOMIC_ACQUIRE),
               seen(&waiting[i]));
    }
    for (size_t i = 0; passes && i < sizeof(passing) / sizeof(passing[0]); i++) {
        prepare(&passing[i]);
        enqueue(wait_for_caller);
        passing[i].call();
        (void)sem_post(&may_end);
        CALL(cuCtxSynchronize, (void));
        printf("%s: passes %d\n", passing[i].name, seen(&passing[i]));
    }
    return 0;
}
