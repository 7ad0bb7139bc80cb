/*
 * A program that fills buffers with random numbers by cuRAND, more of them than a small budget
 * holds, and prints what is in them. A call that the library rejects changes nothing.
 */
#include "shim/driver/driver_calls.h"
#include "shim/libraries/library_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define DECLARE(name, parameters) curandStatus_t name parameters;
#define DECLARE_PLAIN(name, parameters, arguments) DECLARE(name, parameters)
#define DECLARE_FILLING(name, type, parameters, arguments) DECLARE(name, parameters)
RAND_OTHER(DECLARE)
RAND_PLAIN(DECLARE_PLAIN)
RAND_FILLING(DECLARE_FILLING)

enum { BUFFERS = 8, COUNT = 16 << 10, BYTES = 4 * COUNT, XORWOW = 101 };

static struct {
    CUresult (*cuInit)(unsigned);
    CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *, CUdevice);
    CUresult (*cuCtxSetCurrent)(CUcontext);
    CUresult (*cuStreamCreate)(CUstream *, unsigned);
    CUresult (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
    CUresult (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
} cu;

static void check(int result, int expected, const char *what)
{
    if (result != expected) {
        printf("%s: error %d\n", what, result);
        exit(1);
    }
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CUcontext context = NULL;

    check(library == NULL, 0, "libcuda.so.1");
    cu.cuInit = (CUresult(*)(unsigned))dlsym(library, "cuInit");
    cu.cuDevicePrimaryCtxRetain =
        (CUresult(*)(CUcontext *, CUdevice))dlsym(library, "cuDevicePrimaryCtxRetain");
    cu.cuCtxSetCurrent = (CUresult(*)(CUcontext))dlsym(library, "cuCtxSetCurrent");
    cu.cuStreamCreate = (CUresult(*)(CUstream *, unsigned))dlsym(library, "cuStreamCreate");
    cu.cuMemAlloc_v2 = (CUresult(*)(CUdeviceptr *, size_t))dlsym(library, "cuMemAlloc_v2");
    cu.cuMemcpyDtoH_v2 =
        (CUresult(*)(void *, CUdeviceptr, size_t))dlsym(library, "cuMemcpyDtoH_v2");
    check(cu.cuInit(0), 0, "cuInit");
    check(cu.cuDevicePrimaryCtxRetain(&context, 0), 0, "cuDevicePrimaryCtxRetain");
    check(cu.cuCtxSetCurrent(context), 0, "cuCtxSetCurrent");
}

static void print(CUdeviceptr buffer)
{
    static uint32_t host[COUNT];
    uint32_t sum = 0;

    check(cu.cuMemcpyDtoH_v2(host, buffer, BYTES), 0, "cuMemcpyDtoH");
    for (int i = 0; i < COUNT; i++) {
        sum = sum * 31 + host[i];
    }
    printf("%08x\n", sum);
}

int main(void)
{
    enum { LENGTH_NOT_MULTIPLE = 105 };
    CUdeviceptr buffers[BUFFERS];
    curandGenerator_t generator = NULL;
    CUstream stream = NULL;

    /* The program's first call. */
    check((int)curandCreateGenerator(&generator, XORWOW), 0, "curandCreateGenerator");
    open_driver();
    check(cu.cuStreamCreate(&stream, 1), 0, "cuStreamCreate");
    for (int i = 0; i < BUFFERS; i++) {
        check(cu.cuMemAlloc_v2(&buffers[i], BYTES), 0, "cuMemAlloc");
    }
    check((int)curandSetStream(generator, stream), 0, "curandSetStream");
    check((int)curandSetPseudoRandomGeneratorSeed(generator, 1234), 0, "seed");
    for (int i = 0; i < BUFFERS; i++) {
        float *to = (float *)(uintptr_t)buffers[i];

        check((int)(i % 3 == 0   ? curandGenerateUniform(generator, to, COUNT)
                    : i % 3 == 1 ? curandGenerateNormal(generator, to, COUNT / 2, 1.0f, 0.5f)
                                 : curandGenerate(generator, (unsigned *)(void *)to, COUNT)),
              0, "generate");
    }
    check((int)curandGenerateNormal(generator, (float *)(uintptr_t)buffers[0], 3, 0, 1),
          LENGTH_NOT_MULTIPLE, "an odd count");
    for (int i = 0; i < BUFFERS; i++) {
        print(buffers[i]);
    }
    check((int)curandDestroyGenerator(generator), 0, "curandDestroyGenerator");
    return 0;
}
