/*
 * What a launch costs the calling thread: a program that launches kernels of 1, 8 and 30 pointers
 * on 50, 500 and 5,000 allocations, over a driver that does nothing (driver.c). launches.sh runs it
 * alone and by `capuchin run`. Each iteration launches the same and then waits, as training does;
 * those counted come after many others, so that nothing in them is new.
 *
 * One line per case: pointers, allocations, the median and the minimum of an iteration's
 * nanoseconds per launch.
 */
#include "bench/interpose/driver.h"
#include "shim/driver/driver_calls.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LAUNCHES = 400, WARM = 300, COUNTED = 41, POINTERS_MOST = 30, ALLOCATIONS_MOST = 5000 };
enum { BYTES = 4 << 20, TEXT_BYTES = 1 << 16 };

static struct {
    CUresult (*init)(unsigned flags);
    CUresult (*retain)(CUcontext *context, CUdevice device);
    CUresult (*load)(CUmodule *module, const void *image);
    CUresult (*find)(CUfunction *function, CUmodule module, const char *name);
    CUresult (*allocate)(CUdeviceptr *address, size_t bytes);
    CUresult (*launch)(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       CUstream stream, void **parameters, void **extra);
    CUresult (*wait)(void);
} cu;

static void expect(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s failed\n", what);
        exit(EXIT_FAILURE);
    }
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);

    expect(found != NULL, name);
    return found;
}

static void find_calls(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    expect(library != NULL, "loading libcuda.so.1");
    *(void **)&cu.init = symbol(library, "cuInit");
    *(void **)&cu.retain = symbol(library, "cuDevicePrimaryCtxRetain");
    *(void **)&cu.load = symbol(library, "cuModuleLoadData");
    *(void **)&cu.find = symbol(library, "cuModuleGetFunction");
    *(void **)&cu.allocate = symbol(library, "cuMemAlloc_v2");
    *(void **)&cu.launch = symbol(library, "cuLaunchKernel");
    *(void **)&cu.wait = symbol(library, "cuCtxSynchronize");
}

/* A kernel takeN that loads an element through each pointer but the last, to which it stores. */
static int write_kernel(char *text, size_t bytes, int pointers)
{
    int at = snprintf(text, bytes, ".visible .entry take%d(", pointers);

    for (int i = 0; i < pointers; i++) {
        at += snprintf(text + at, bytes - (size_t)at, ".param .u64 p%d, ", i);
    }
    at += snprintf(text + at, bytes - (size_t)at,
                   ".param .u32 n)\n{\n.reg .pred %%q;\n.reg .b32 %%t, %%n;\n.reg .f32 %%f, %%s;\n"
                   ".reg .b64 %%o, %%p<%d>, %%g<%d>, %%a<%d>;\nmov.u32 %%t, %%tid.x;\n"
                   "ld.param.u32 %%n, [n];\nsetp.ge.u32 %%q, %%t, %%n;\n@%%q bra END;\n"
                   "mul.wide.u32 %%o, %%t, 4;\nmov.f32 %%s, 0f3F800000;\n",
                   pointers, pointers, pointers);
    for (int i = 0; i < pointers; i++) {
        const char *access = i < pointers - 1
                                 ? "ld.global.f32 %%f, [%%a%d];\nadd.rn.f32 %%s, %%s, %%f;\n"
                                 : "st.global.f32 [%%a%d], %%s;\n";

        at += snprintf(text + at, bytes - (size_t)at,
                       "ld.param.u64 %%p%d, [p%d];\ncvta.to.global.u64 %%g%d, %%p%d;\n"
                       "add.s64 %%a%d, %%g%d, %%o;\n",
                       i, i, i, i, i, i);
        at += snprintf(text + at, bytes - (size_t)at, access, i);
    }
    return at + snprintf(text + at, bytes - (size_t)at, "END:\nret;\n}\n");
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

static CUdeviceptr allocations[ALLOCATIONS_MOST];

/* Nanoseconds per launch of one iteration. */
static double iterate(CUfunction kernel, int pointers, int allocation_count)
{
    unsigned count = THREADS;
    void *parameters[POINTERS_MOST + 1];
    double start = now_ns();
    double passed;
    uint64_t next = 1; /* the same launches in each iteration, and no shorter period */

    parameters[pointers] = &count;
    for (int k = 0; k < LAUNCHES; k++) {
        for (int i = 0; i < pointers; i++) {
            next = next * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            parameters[i] = &allocations[(next >> 33) % (uint64_t)allocation_count];
        }
        expect(cu.launch(kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL) ==
                   DRIVER_SUCCESS,
               "a launch");
    }
    passed = now_ns() - start;
    expect(cu.wait() == DRIVER_SUCCESS, "waiting");
    return passed / LAUNCHES;
}

static void measure(CUmodule module, int pointers, int allocation_count)
{
    double times[COUNTED];
    char name[16];
    CUfunction kernel;

    snprintf(name, sizeof(name), "take%d", pointers);
    expect(cu.find(&kernel, module, name) == DRIVER_SUCCESS, name);
    for (int i = 0; i < WARM + COUNTED; i++) {
        double ns = iterate(kernel, pointers, allocation_count);

        if (i >= WARM) {
            times[i - WARM] = ns;
        }
    }
    qsort(times, COUNTED, sizeof(times[0]), by_value);
    printf("%d %d %.0f %.0f\n", pointers, allocation_count, times[COUNTED / 2], times[0]);
    (void)fflush(stdout);
}

int main(void)
{
    static const int pointer_counts[] = {1, 8, 30};
    static const int allocation_counts[] = {50, 500, 5000};
    static char text[TEXT_BYTES] = ".version 7.0\n.target sm_90\n.address_size 64\n";
    CUcontext context;
    CUmodule module;
    int made = 0;

    find_calls();
    for (int i = 0; i < 3; i++) {
        size_t at = strlen(text);

        (void)write_kernel(text + at, sizeof(text) - at, pointer_counts[i]);
    }
    expect(cu.init(0) == DRIVER_SUCCESS && cu.retain(&context, 0) == DRIVER_SUCCESS &&
               cu.load(&module, text) == DRIVER_SUCCESS,
           "starting");
    for (int n = 0; n < 3; n++) {
        while (made < allocation_counts[n]) {
            expect(cu.allocate(&allocations[made++], BYTES) == DRIVER_SUCCESS, "an allocation");
        }
        for (int i = 0; i < 3; i++) {
            measure(module, pointer_counts[i], allocation_counts[n]);
        }
    }
    return EXIT_SUCCESS;
}
