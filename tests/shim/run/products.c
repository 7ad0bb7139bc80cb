/*
 * A program that multiplies matrices by cuBLAS, in buffers that it gets from the driver, and prints
 * what is in them. It is linked with the library, as CUDA programs are.
 */
#include "shim/driver/driver_calls.h"
#include "shim/libraries/library_calls.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* What library_calls.h does not need. */
#define DECLARE(name, parameters, arguments) cublasStatus_t name parameters;
BLAS_WRAPPED(DECLARE)
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, int mode);
cublasStatus_t cublasSrot_v2(cublasHandle_t handle, int n, float *x, int step_x, float *y,
                             int step_y, const float *cosine, const float *sine);
cublasStatus_t cublasLtCreate(cublasLtHandle *handle);
cublasStatus_t cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns,
                                          int64_t ld);
cublasStatus_t cublasLtMatmulDescCreate(void **description, int compute, int scale);
cublasStatus_t cublasLtMatmulDescSetAttribute(void *description, int attribute, const void *value,
                                              size_t bytes);

enum { SIZE = 64, BUFFERS = 10, ELEMENTS = 3 * SIZE * SIZE, BYTES = ELEMENTS * 4 };
enum { TYPE_HALF = 2 };
enum { COMPUTE_FLOAT = 68, EPILOGUE = 7, BIAS = 8, EPILOGUE_BIAS = 4 };

static struct {
    CUresult (*cuInit)(unsigned);
    CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *, CUdevice);
    CUresult (*cuCtxSetCurrent)(CUcontext);
    CUresult (*cuStreamCreate)(CUstream *, unsigned);
    CUresult (*cuStreamSynchronize)(CUstream);
    CUresult (*cuStreamBeginCapture)(CUstream, int);
    CUresult (*cuStreamEndCapture)(CUstream, CUgraph *);
    CUresult (*cuGraphInstantiate)(CUgraphExec *, CUgraph, unsigned long long);
    CUresult (*cuGraphLaunch)(CUgraphExec, CUstream);
    CUresult (*cuGraphDestroy)(CUgraph);
    CUresult (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
    CUresult (*cuMemcpyHtoD_v2)(CUdeviceptr, const void *, size_t);
    CUresult (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
} cu;

static float host[ELEMENTS];
static float *buffers[BUFFERS];

static void check(int result, const char *what)
{
    if (result != 0) {
        printf("%s: error %d\n", what, result);
        exit(1);
    }
}

#define CHECK(name, ...) check(name(__VA_ARGS__), #name)

static void *find(void *library, const char *name)
{
    void *function = library != NULL ? dlsym(library, name) : NULL;

    if (function == NULL) {
        printf("%s\n", dlerror());
        exit(3);
    }
    return function;
}

/* Buffers of their own, or parts of one allocation, which begin inside pages. */
static void allocate(bool from_blob)
{
    CUdeviceptr address = 0;

    if (from_blob) {
        CHECK(cu.cuMemAlloc_v2, &address, (size_t)BUFFERS * (BYTES + 256));
    }
    for (int i = 0; i < BUFFERS; i++) {
        if (!from_blob) {
            CHECK(cu.cuMemAlloc_v2, &address, BYTES);
        }
        CHECK(cu.cuMemcpyHtoD_v2, address, host, BYTES);
        buffers[i] = (float *)(uintptr_t)address;
        address += BYTES + 256;
    }
}

static void start(CUstream *stream, bool from_blob)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CUcontext context = NULL;

    cu.cuInit = (CUresult(*)(unsigned))find(library, "cuInit");
    cu.cuDevicePrimaryCtxRetain =
        (CUresult(*)(CUcontext *, CUdevice))find(library, "cuDevicePrimaryCtxRetain");
    cu.cuCtxSetCurrent = (CUresult(*)(CUcontext))find(library, "cuCtxSetCurrent");
    cu.cuStreamCreate = (CUresult(*)(CUstream *, unsigned))find(library, "cuStreamCreate");
    cu.cuStreamSynchronize = (CUresult(*)(CUstream))find(library, "cuStreamSynchronize");
    cu.cuStreamBeginCapture = (CUresult(*)(CUstream, int))find(library, "cuStreamBeginCapture_v2");
    cu.cuStreamEndCapture = (CUresult(*)(CUstream, CUgraph *))find(library, "cuStreamEndCapture");
    cu.cuGraphInstantiate = (CUresult(*)(CUgraphExec *, CUgraph, unsigned long long))find(
        library, "cuGraphInstantiateWithFlags");
    cu.cuGraphLaunch = (CUresult(*)(CUgraphExec, CUstream))find(library, "cuGraphLaunch");
    cu.cuGraphDestroy = (CUresult(*)(CUgraph))find(library, "cuGraphDestroy");
    cu.cuMemAlloc_v2 = (CUresult(*)(CUdeviceptr *, size_t))find(library, "cuMemAlloc_v2");
    cu.cuMemcpyHtoD_v2 =
        (CUresult(*)(CUdeviceptr, const void *, size_t))find(library, "cuMemcpyHtoD_v2");
    cu.cuMemcpyDtoH_v2 = (CUresult(*)(void *, CUdeviceptr, size_t))find(library, "cuMemcpyDtoH_v2");
    CHECK(cu.cuInit, 0);
    CHECK(cu.cuDevicePrimaryCtxRetain, &context, 0);
    CHECK(cu.cuCtxSetCurrent, context);
    CHECK(cu.cuStreamCreate, stream, 1);
    for (int i = 0; i < ELEMENTS; i++) {
        host[i] = (float)(i * 7 % 19) / 19.0f - 0.4f;
    }
    allocate(from_blob);
}

static void print_buffers(CUstream stream)
{
    CHECK(cu.cuStreamSynchronize, stream);
    for (int i = 0; i < BUFFERS; i++) {
        uint32_t sum = 0;

        CHECK(cu.cuMemcpyDtoH_v2, host, (uintptr_t)buffers[i], BYTES);
        for (int j = 0; j < ELEMENTS; j++) {
            uint32_t bits = *(uint32_t *)(void *)&host[j];

            sum = sum * 31 + bits;
        }
        printf("%d %08x\n", i, sum);
    }
}

/* The products whose results are the buffers from one index to another. */
static void multiply_some(cublasHandle_t handle, int from, int to)
{
    static const float one = 1.0f;
    static const float zero = 0.0f;
    static const float small = 0.01f;
    const int n = SIZE;

    for (int i = from; i < to; i++) {
        const float *a = buffers[i - 2];
        const float *b = buffers[i - 1];
        float *c = buffers[i];

        CHECK(cublasSgemm_v2, handle, 0, 1, n, n, n, &small, a, n, b, n, i % 2 != 0 ? &zero : &one,
              c, n);
        CHECK(cublasSgemmStridedBatched, handle, 0, 0, n, n, n, &small, a, n, n * n, b, n, n * n,
              &zero, c, n, n * n, 3);
        /* A quarter of the result, with gaps between its columns. */
        CHECK(cublasGemmEx, handle, 1, 0, n / 2, n / 2, n, &small, b, 0, n, a, 0, n, &zero, c, 0, n,
              COMPUTE_FLOAT, -1);
        CHECK(cublasGemmStridedBatchedEx, handle, 0, 0, n, n, n, &small, b, 0, n, 0, a, 0, n, 0,
              &one, c, 0, n, n * n, 2, COMPUTE_FLOAT, -1);
    }
}

/* Halves and doubles, whatever the floats mean as such. */
static void multiply_others(cublasHandle_t handle)
{
    static const __half one = 0x3c00;
    static const __half zero = 0x8000; /* negative */
    static const double double_one = 1.0;
    static const double double_zero = 0.0;
    static const float small = 0.01f;
    static const float float_zero = 0.0f;
    const __half *a = (const __half *)buffers[0];
    const __half *b = (const __half *)buffers[1];
    __half *c = (__half *)buffers[2];
    const int n = SIZE;
    const int m = SIZE / 2;

    CHECK(cublasHgemm, handle, 0, 1, n, n, n, &one, a, n, b, n, &zero, c, n);
    CHECK(cublasHgemmStridedBatched, handle, 0, 0, n, n, n, &one, b, n, n * n, c, n, 0, &one,
          (__half *)buffers[3], n, n * n, 3);
    CHECK(cublasSgemmEx, handle, 0, 0, n, n, n, &small, b, TYPE_HALF, n, c, TYPE_HALF, n,
          &float_zero, buffers[4], 0, n);
    CHECK(cublasDgemmStridedBatched, handle, 1, 0, m, m, m, &double_one, (const double *)buffers[3],
          m, m * m, (const double *)buffers[4], m, m * m, &double_zero, (double *)buffers[5], m,
          m * m, 3);
}

static void multiply(cublasHandle_t handle)
{
    multiply_some(handle, 2, BUFFERS);
    multiply_others(handle);
}

/* A graph for two results, with three buffers more as operands, and products outside of it. */
static void multiply_in_graphs(cublasHandle_t handle, CUstream stream)
{
    for (int i = 2; i < BUFFERS; i += 2) {
        CUgraph graph = NULL;
        CUgraphExec exec = NULL;

        CHECK(cu.cuStreamBeginCapture, stream, 0);
        multiply_some(handle, i, i + 2);
        CHECK(cu.cuStreamEndCapture, stream, &graph);
        CHECK(cu.cuGraphInstantiate, &exec, graph, 0);
        CHECK(cu.cuGraphDestroy, graph);
        CHECK(cu.cuGraphLaunch, exec, stream);
        multiply_some(handle, 2, 3);
        CHECK(cu.cuGraphLaunch, exec, stream);
    }
}

/* Factors in device memory, the first of them in a buffer. */
static void multiply_by_device_factors(cublasHandle_t handle)
{
    const int n = SIZE;

    CHECK(cublasSetPointerMode_v2, handle, 1);
    CHECK(cublasSgemm_v2, handle, 0, 0, n, n, n, buffers[0] + 5, buffers[1], n, buffers[2], n,
          buffers[0] + 6, buffers[3], n);
    CHECK(cublasSetPointerMode_v2, handle, 0);
}

static void multiply_with_bias(CUstream stream)
{
    static const float one = 1.0f;
    static const float zero = 0.0f;
    const uint32_t epilogue = EPILOGUE_BIAS;
    cublasLtHandle handle = NULL;
    void *description = NULL;
    void *layout = NULL;

    CHECK(cublasLtCreate, &handle);
    CHECK(cublasLtMatmulDescCreate, &description, COMPUTE_FLOAT, 0);
    CHECK(cublasLtMatmulDescSetAttribute, description, EPILOGUE, &epilogue, sizeof(epilogue));
    CHECK(cublasLtMatmulDescSetAttribute, description, BIAS, &buffers[9], sizeof(buffers[9]));
    CHECK(cublasLtMatrixLayoutCreate, &layout, 0, SIZE, SIZE, SIZE);
    for (int i = 2; i < 6; i++) {
        CHECK(cublasLtMatmul, handle, description, &one, buffers[i - 2], layout, buffers[i - 1],
              layout, &zero, buffers[i], layout, buffers[i], layout, NULL, NULL, 0, stream);
    }
}

/* Results on the host are printed; those in device memory are in buffers. */
static void combine_vectors(cublasHandle_t handle)
{
    static const float half = 0.5f;
    static const float zero = 0.0f;
    const int n = SIZE;
    float sums[3] = {0};
    int largest = 0;

    CHECK(cublasSscal_v2, handle, ELEMENTS, &half, buffers[0], 1);
    CHECK(cublasSaxpy_v2, handle, ELEMENTS / 3, &half, buffers[1], 3, buffers[2], 1);
    CHECK(cublasScopy_v2, handle, ELEMENTS, buffers[2], 1, buffers[3], 1);
    CHECK(cublasScopy_v2, handle, ELEMENTS / 2, buffers[1], 1, buffers[4], 2);
    CHECK(cublasScopy_v2, handle, 0, buffers[1], 1, buffers[5], 1);
    CHECK(cublasSswap_v2, handle, n, buffers[4] + 5, 2, buffers[6], 1);
    CHECK(cublasSgemv_v2, handle, 1, n, n, &half, buffers[3], n, buffers[2], 1, &zero, buffers[7],
          1);
    CHECK(cublasSgemv_v2, handle, 0, n, 0, &half, buffers[3], n, buffers[2], 1, &zero, buffers[8],
          1);
    CHECK(cublasSger_v2, handle, n, n, &half, buffers[7], 1, buffers[2], 3, buffers[5], n);
    CHECK(cublasSgeam, handle, 1, 0, n, n, &half, buffers[5], n, &zero, NULL, n, buffers[9], n);
    CHECK(cublasSdot_v2, handle, ELEMENTS, buffers[3], 1, buffers[9], 1, &sums[0]);
    CHECK(cublasSnrm2_v2, handle, ELEMENTS / 2, buffers[4], 2, &sums[1]);
    CHECK(cublasSasum_v2, handle, ELEMENTS, buffers[8], 1, &sums[2]);
    CHECK(cublasIsamax_v2, handle, ELEMENTS, buffers[6], 1, &largest);
    printf("%a %a %a %d\n", sums[0], sums[1], sums[2], largest);
    CHECK(cublasSetPointerMode_v2, handle, 1);
    CHECK(cublasSscal_v2, handle, n, buffers[0] + 7, buffers[1], 1);
    CHECK(cublasSdot_v2, handle, ELEMENTS, buffers[3], 1, buffers[9], 1, buffers[0] + 8);
    CHECK(cublasSetPointerMode_v2, handle, 0);
}

int main(int argc, char **argv)
{
    static const float half = 0.5f;
    CUstream stream = NULL;
    CUstream got = NULL;
    cublasHandle_t handle = NULL;

    CHECK(cublasCreate_v2, &handle); /* the program's first call */
    start(&stream, argc > 1 && argv[1][0] == 'b');
    CHECK(cublasSetStream_v2, handle, stream);
    CHECK(cublasGetStream_v2, handle, &got);
    printf("stream %d\n", got == stream);
    multiply(handle);
    multiply_by_device_factors(handle);
    print_buffers(stream);
    if (argc > 1 && argv[1][0] == 'l') {
        multiply_with_bias(stream);
        print_buffers(stream);
    }
    if (argc > 1 && argv[1][0] == 'g') {
        multiply_in_graphs(handle, stream);
        print_buffers(stream);
    }
    if (argc > 1 && argv[1][0] == 'v') {
        combine_vectors(handle);
        print_buffers(stream);
    }
    if (argc > 1 && argv[1][0] == 'r') { /* a function that is not known */
        printf("rotate %d\n",
               cublasSrot_v2(handle, 10, buffers[0], 1, buffers[1], 1, &half, &half));
        print_buffers(stream);
    }
    CHECK(cublasDestroy_v2, handle);
    return 0;
}
