/* The driver, the kernels and products, see blas.h. */
#include "tests/ptx/cublas/blas.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

/* The text of kernels.ptx, terminated. */
__asm__(".section .rodata\n"
        ".local blas_kernels_ptx\n"
        "blas_kernels_ptx:\n"
        ".incbin \"" BLAS_KERNELS_PTX "\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char blas_kernels_ptx[];

static struct driver_table driver;
static struct driver_table per_thread; /* what NVIDIA's library asks for too */
static CUlibrary library;
static CUkernel kernels[BLAS_KERNELS];
static cublasStatus_t started;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool make_current(void)
{
    CUcontext context = NULL;

    if (driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS) {
        return false;
    }
    return context != NULL || (driver.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
                               driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
}

static void start(void)
{
    static const char *const names[] = {"capuchin_gemm",     "capuchin_gemm_pointers",
                                        "capuchin_gemm_f64", "capuchin_vector",
                                        "capuchin_reduce",   "capuchin_matrix"};

    started = CUBLAS_STATUS_NOT_INITIALIZED;
    if (driver_table_open(&driver, &per_thread) != DRIVER_TABLE_OPEN ||
        driver.cuInit(0) != CUDA_SUCCESS || !make_current() ||
        driver.cuLibraryLoadData(&library, blas_kernels_ptx, NULL, NULL, 0, NULL, NULL, 0) !=
            CUDA_SUCCESS) {
        return;
    }
    for (unsigned i = 0; i < BLAS_KERNELS; i++) {
        if (driver.cuLibraryGetKernel(&kernels[i], library, names[i]) != CUDA_SUCCESS) {
            return;
        }
    }
    started = CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t blas_enter(void)
{
    pthread_once(&once, start);
    if (started == CUBLAS_STATUS_SUCCESS && !make_current()) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    return started;
}

const struct driver_table *blas_driver(void)
{
    return &driver;
}

cublasStatus_t blas_launch(enum blas_kernel kernel, const unsigned grid[3], const unsigned block[3],
                           CUstream stream, void **arguments)
{
    return driver.cuLaunchKernel((CUfunction)kernels[kernel], grid[0], grid[1], grid[2], block[0],
                                 block[1], block[2], 0, stream, arguments, NULL) == CUDA_SUCCESS
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}

void blas_strides(cublasOperation_t operation, int ld, int *row, int *column)
{
    *row = operation == CUBLAS_OP_N ? 1 : ld;
    *column = operation == CUBLAS_OP_N ? ld : 1;
}

/* f16 by its definition; infinities and NaNs are no scalars. */
static float float_of_half(const void *at)
{
    uint16_t bits;
    int exponent;
    float magnitude;

    memcpy(&bits, at, sizeof(bits));
    exponent = bits >> 10 & 31;
    /* Divided by powers of two, 2^24 and 2^25, which is exact. */
    magnitude = exponent == 0
                    ? (float)(bits & 1023) / 16777216.0f
                    : (float)(1024 + (bits & 1023)) / 33554432.0f * (float)(1u << exponent);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool blas_scalars(struct blas_product *product, cublasPointerMode_t mode,
                  cublasComputeType_t compute, const void *alpha, const void *beta)
{
    bool is_half = compute == CUBLAS_COMPUTE_16F;

    if (!is_half && compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC &&
        (compute < CUBLAS_COMPUTE_32F_FAST_16F || compute > CUBLAS_COMPUTE_32F_FAST_TF32)) {
        return false;
    }
    if (mode == CUBLAS_POINTER_MODE_DEVICE) {
        product->alpha_at = alpha;
        product->beta_at = beta;
        return !is_half;
    }
    product->alpha = is_half ? float_of_half(alpha) : *(const float *)alpha;
    product->beta = is_half ? float_of_half(beta) : *(const float *)beta;
    return true;
}

cublasStatus_t blas_form(struct blas_product *product, cublasPointerMode_t mode,
                         cublasComputeType_t compute, cublasOperation_t transa, int lda,
                         cublasOperation_t transb, int ldb, const void *alpha, const void *beta)
{
    if (alpha == NULL || beta == NULL || transa > CUBLAS_OP_C || transb > CUBLAS_OP_C ||
        lda < (transa == CUBLAS_OP_N ? product->m : product->k) ||
        ldb < (transb == CUBLAS_OP_N ? product->k : product->n)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!blas_scalars(product, mode, compute, alpha, beta)) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    blas_strides(transa, lda, &product->a_row, &product->a_column);
    blas_strides(transb, ldb, &product->b_row, &product->b_column);
    return CUBLAS_STATUS_SUCCESS;
}

static bool is_known(cudaDataType type)
{
    return type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

/* Whether there is something to do. */
static cublasStatus_t check_product(const struct blas_product *product, int count, bool *is_empty)
{
    if (!is_known(product->a_type) || !is_known(product->b_type) || !is_known(product->c_type)) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (product->m < 0 || product->n < 0 || product->k < 0 || count < 0 ||
        product->ldc < product->m || product->ldd < product->m) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *is_empty = product->m == 0 || product->n == 0 || count == 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t blas_multiply_arrays(struct blas_product product, const struct blas_arrays *arrays,
                                    int count, CUstream stream)
{
    enum { SIDE = 16 };
    const unsigned grid[] = {((unsigned)product.m + SIDE - 1) / SIDE,
                             ((unsigned)product.n + SIDE - 1) / SIDE, (unsigned)count};
    const unsigned block[] = {SIDE, SIDE, 1};
    struct blas_arrays own = arrays == NULL ? (struct blas_arrays){NULL, NULL, NULL} : *arrays;
    void *arguments[] = {&product, &own.a, &own.b, &own.c};
    bool is_empty = false;
    cublasStatus_t status = check_product(&product, count, &is_empty);

    if (status != CUBLAS_STATUS_SUCCESS || is_empty) {
        return status;
    }
    return blas_launch(arrays == NULL ? BLAS_GEMM : BLAS_GEMM_POINTERS, grid, block, stream,
                       arguments);
}

cublasStatus_t blas_multiply(struct blas_product product, int count, CUstream stream)
{
    return blas_multiply_arrays(product, NULL, count, stream);
}
