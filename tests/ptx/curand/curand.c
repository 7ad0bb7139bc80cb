/*
 * libcurand of these tests: generators whose numbers are made by kernels of their own, launched
 * through the driver as those of NVIDIA's library are. The seed goes to the device when numbers are
 * first wanted.
 */
#include "tests/ptx/client/driver_table.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

typedef unsigned curandStatus_t;
typedef unsigned curandRngType_t;
typedef struct curandGenerator_st *curandGenerator_t;
typedef CUstream cudaStream_t;

#include "tests/ptx/include/curand_calls.h"

#define DECLARE(name, parameters) \
    __attribute__((visibility("default"))) curandStatus_t name parameters;
CURAND_CALLS(DECLARE)

enum {
    CURAND_SUCCESS = 0,
    CURAND_NOT_INITIALIZED = 101,
    CURAND_ALLOCATION_FAILED = 102,
    CURAND_TYPE_ERROR = 103,
    CURAND_LENGTH_NOT_MULTIPLE = 105,
    CURAND_LAUNCH_FAILURE = 201,
};
enum { PSEUDO_FIRST = 100, QUASI_FIRST = 200 };
enum { FILL_BITS = 0, FILL_UNIFORM = 1, FILL_NORMAL = 2 };
enum kernel { KERNEL_FILL, KERNEL_SKIP, KERNEL_BEGIN, KERNELS };

struct curandGenerator_st {
    CUstream stream;
    CUdeviceptr state;
    unsigned long long seed;
    bool has_begun;
};

/* The text of kernels.ptx, terminated. */
__asm__(".section .rodata\n"
        ".local rand_kernels_ptx\n"
        "rand_kernels_ptx:\n"
        ".incbin \"" RAND_KERNELS_PTX "\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char rand_kernels_ptx[];

static struct driver_table driver;
static struct driver_table per_thread;
static CUkernel kernels[KERNELS];
static bool is_open;

static void start(void)
{
    static const char *const names[] = {"capuchin_random", "capuchin_random_skip",
                                        "capuchin_random_begin"};
    CUcontext context = NULL;
    CUlibrary library;

    if (driver_table_open(&driver, &per_thread) != DRIVER_TABLE_OPEN ||
        driver.cuInit(0) != CUDA_SUCCESS ||
        driver.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        driver.cuCtxSetCurrent(context) != CUDA_SUCCESS ||
        driver.cuLibraryLoadData(&library, rand_kernels_ptx, NULL, NULL, 0, NULL, NULL, 0) !=
            CUDA_SUCCESS) {
        return;
    }
    is_open = true;
    for (unsigned i = 0; i < KERNELS; i++) {
        is_open &= driver.cuLibraryGetKernel(&kernels[i], library, names[i]) == CUDA_SUCCESS;
    }
}

static bool launch(curandGenerator_t generator, enum kernel kernel, unsigned blocks,
                   unsigned threads, void **arguments)
{
    return driver.cuLaunchKernel((CUfunction)kernels[kernel], blocks, 1, 1, threads, 1, 1, 0,
                                 generator->stream, arguments, NULL) == CUDA_SUCCESS;
}

curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type)
{
    enum { STATE_BYTES = 16 };
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    curandGenerator_t made;

    (void)pthread_once(&once, start);
    if (!is_open) {
        return CURAND_NOT_INITIALIZED;
    }
    if (type < PSEUDO_FIRST || type >= QUASI_FIRST) {
        return CURAND_TYPE_ERROR;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL || driver.cuMemAlloc(&made->state, STATE_BYTES) != CUDA_SUCCESS) {
        free(made);
        return CURAND_ALLOCATION_FAILED;
    }
    *generator = made;
    return CURAND_SUCCESS;
}

curandStatus_t curandDestroyGenerator(curandGenerator_t generator)
{
    if (generator == NULL) {
        return CURAND_NOT_INITIALIZED;
    }
    (void)driver.cuMemFree(generator->state);
    free(generator);
    return CURAND_SUCCESS;
}

curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream)
{
    if (generator == NULL) {
        return CURAND_NOT_INITIALIZED;
    }
    generator->stream = stream;
    return CURAND_SUCCESS;
}

curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator,
                                                  unsigned long long seed)
{
    if (generator == NULL) {
        return CURAND_NOT_INITIALIZED;
    }
    generator->seed = seed;
    generator->has_begun = false;
    return CURAND_SUCCESS;
}

static curandStatus_t fill(curandGenerator_t generator, int what, void *numbers, size_t count,
                           float mean, float deviation)
{
    enum { THREADS = 256 };
    unsigned blocks = (unsigned)((count + THREADS - 1) / THREADS);
    unsigned long long wanted = count;
    void *fill_arguments[] = {&what, NULL, &numbers, &wanted, &mean, &deviation};
    void *skip_arguments[] = {NULL, &wanted};
    void *begin_arguments[] = {NULL, NULL};

    if (generator == NULL) {
        return CURAND_NOT_INITIALIZED;
    }
    fill_arguments[1] = skip_arguments[0] = begin_arguments[0] = &generator->state;
    begin_arguments[1] = &generator->seed;
    if ((!generator->has_begun && !launch(generator, KERNEL_BEGIN, 1, 1, begin_arguments)) ||
        (count > 0 && !launch(generator, KERNEL_FILL, blocks, THREADS, fill_arguments)) ||
        !launch(generator, KERNEL_SKIP, 1, 1, skip_arguments)) {
        return CURAND_LAUNCH_FAILURE;
    }
    generator->has_begun = true;
    return CURAND_SUCCESS;
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned *numbers, size_t count)
{
    return fill(generator, FILL_BITS, numbers, count, 0, 0);
}

curandStatus_t curandGenerateUniform(curandGenerator_t generator, float *numbers, size_t count)
{
    return fill(generator, FILL_UNIFORM, numbers, count, 0, 0);
}

/* Normal numbers come in pairs. */
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float *numbers, size_t count,
                                    float mean, float deviation)
{
    return count % 2 != 0 ? (curandStatus_t)CURAND_LENGTH_NOT_MULTIPLE
                          : fill(generator, FILL_NORMAL, numbers, count, mean, deviation);
}
