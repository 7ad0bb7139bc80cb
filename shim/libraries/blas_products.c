/* Matrix products of cuBLAS. C is written as a whole if beta is 0 and there are no gaps in it. */
#include "shim/core/core.h"
#include "shim/libraries/blas.h"

struct product {
    cublasHandle_t handle;
    unsigned transpose_a, transpose_b;
    int64_t m, n, k;
    const void *alpha, *beta;
    int scalar_type; /* a cudaDataType, of what alpha and beta are at most as large as */
    struct blas_matrix a, b, c;
};

/* The largest scalar: a complex number of two doubles. */
enum { SCALAR_BYTES = 16 };

/* Scalars that are floats, doubles or halves; other types keep C's old value. */
static bool is_zero(const void *beta, int type)
{
    switch (type) {
    case 0: /* CUDA_R_32F */
        return *(const float *)beta == 0.0f;
    case 1: /* CUDA_R_64F */
        return *(const double *)beta == 0.0;
    case 2: /* CUDA_R_16F */
        return (*(const __half *)beta & 0x7fff) == 0;
    default:
        return false;
    }
}

/* Completes the matrices' shapes and adds them, all that the program has if something is not
   known. */
static void add_operands(struct blas_call *call, struct product *product)
{
    struct operands *operands = &call->operands;
    unsigned mode = BLAS_POINTERS_ON_HOST;
    bool keeps = true;

    if (call->status != BLAS_SUCCESS) {
        return;
    }
    product->a.rows = product->transpose_a == BLAS_NO_TRANSPOSE ? product->m : product->k;
    product->a.columns = product->transpose_a == BLAS_NO_TRANSPOSE ? product->k : product->m;
    product->b.rows = product->transpose_b == BLAS_NO_TRANSPOSE ? product->k : product->n;
    product->b.columns = product->transpose_b == BLAS_NO_TRANSPOSE ? product->n : product->k;
    product->c.rows = product->m;
    product->c.columns = product->n;
    if (product->a.element_bytes == 0 || product->b.element_bytes == 0 ||
        product->c.element_bytes == 0 ||
        blas_calls()->cublasGetPointerMode_v2(product->handle, &mode) != BLAS_SUCCESS) {
        operands_add_all(operands);
        return;
    }
    if (mode == BLAS_POINTERS_ON_HOST) {
        keeps = product->alpha == NULL || product->beta == NULL ||
                !is_zero(product->beta, product->scalar_type) || !blas_is_used(&product->a) ||
                !blas_is_used(&product->b);
    } else {
        operands_add_range(operands, (uintptr_t)product->alpha, SCALAR_BYTES, CAPU_READ);
        operands_add_range(operands, (uintptr_t)product->beta, SCALAR_BYTES, CAPU_READ);
    }
    blas_add_read(operands, &product->a);
    blas_add_read(operands, &product->b);
    blas_add_written(operands, &product->c, keeps);
}

/* The scalars' type, if it is float, double or half: by cublasComputeType_t, for a result of real
   numbers. -1: another one. */
static int scalar_type(unsigned compute, int result_type)
{
    bool is_real = result_type <= 2 || result_type == 14;
    bool is_float = compute == 68 || compute == 69 || (compute >= 74 && compute <= 77);
    bool is_double = compute == 70 || compute == 71;
    bool is_half = compute == 64 || compute == 65;

    return !is_real ? -1 : is_float ? 0 : is_double ? 1 : is_half ? 2 : -1;
}

#define MATRIX(pointer, leading, apart, number, bytes)                               \
    {                                                                                \
        .address = (pointer), .ld = (leading), .stride = (apart), .count = (number), \
        .element_bytes = (bytes)                                                     \
    }

/* What all products begin with. */
#define SHAPE handle, transpose_a, transpose_b, m, n, k, alpha, beta

/* Begins the access, calls the library and ends the access. */
#define CARRY_OUT(name, product, arguments)                                                        \
    do {                                                                                           \
        struct blas_call call = blas_enter(#name);                                                 \
                                                                                                   \
        add_operands(&call, &(product));                                                           \
        return blas_begin(&call, (product).handle) ? blas_end(&call, blas_calls()->name arguments) \
                                                   : call.status;                                  \
    } while (0)

/* For elements and scalars of type T, which is number TYPE of cudaDataType. */
#define PRODUCTS(P, V, T, TYPE)                                                                 \
    cublasStatus_t on_cublas##P##gemm##V(                                                       \
        cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k, \
        const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc) \
    {                                                                                           \
        struct product product = {SHAPE, TYPE, MATRIX(a, lda, 0, 1, sizeof(T)),                 \
                                  MATRIX(b, ldb, 0, 1, sizeof(T)),                              \
                                  MATRIX(c, ldc, 0, 1, sizeof(T))};                             \
                                                                                                \
        CARRY_OUT(                                                                              \
            cublas##P##gemm##V, product,                                                        \
            (handle, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));  \
    }                                                                                           \
                                                                                                \
    cublasStatus_t on_cublas##P##gemmStridedBatched(                                            \
        cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k, \
        const T *alpha, const T *a, int lda, long long stride_a, const T *b, int ldb,           \
        long long stride_b, const T *beta, T *c, int ldc, long long stride_c, int count)        \
    {                                                                                           \
        struct product product = {SHAPE, TYPE, MATRIX(a, lda, stride_a, count, sizeof(T)),      \
                                  MATRIX(b, ldb, stride_b, count, sizeof(T)),                   \
                                  MATRIX(c, ldc, stride_c, count, sizeof(T))};                  \
                                                                                                \
        CARRY_OUT(cublas##P##gemmStridedBatched, product,                                       \
                  (handle, transpose_a, transpose_b, m, n, k, alpha, a, lda, stride_a, b, ldb,  \
                   stride_b, beta, c, ldc, stride_c, count));                                   \
    }
PRODUCTS(S, _v2, float, 0)
PRODUCTS(D, _v2, double, 1)
PRODUCTS(H, , __half, 2)

cublasStatus_t on_cublasSgemmEx(cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b,
                                int m, int n, int k, const float *alpha, const void *a,
                                unsigned type_a, int lda, const void *b, unsigned type_b, int ldb,
                                const float *beta, void *c, unsigned type_c, int ldc)
{
    struct product product = {SHAPE, scalar_type(68, (int)type_c),
                              MATRIX(a, lda, 0, 1, blas_element_bytes(type_a)),
                              MATRIX(b, ldb, 0, 1, blas_element_bytes(type_b)),
                              MATRIX(c, ldc, 0, 1, blas_element_bytes(type_c))};

    CARRY_OUT(cublasSgemmEx, product,
              (handle, transpose_a, transpose_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb,
               beta, c, type_c, ldc));
}

cublasStatus_t on_cublasGemmEx(cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b,
                               int m, int n, int k, const void *alpha, const void *a,
                               unsigned type_a, int lda, const void *b, unsigned type_b, int ldb,
                               const void *beta, void *c, unsigned type_c, int ldc,
                               unsigned compute, int algorithm)
{
    struct product product = {SHAPE, scalar_type(compute, type_c),
                              MATRIX(a, lda, 0, 1, blas_element_bytes(type_a)),
                              MATRIX(b, ldb, 0, 1, blas_element_bytes(type_b)),
                              MATRIX(c, ldc, 0, 1, blas_element_bytes(type_c))};

    CARRY_OUT(cublasGemmEx, product,
              (handle, transpose_a, transpose_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb,
               beta, c, type_c, ldc, compute, algorithm));
}

cublasStatus_t on_cublasGemmStridedBatchedEx(
    cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k,
    const void *alpha, const void *a, unsigned type_a, int lda, long long stride_a, const void *b,
    unsigned type_b, int ldb, long long stride_b, const void *beta, void *c, unsigned type_c,
    int ldc, long long stride_c, int count, unsigned compute, int algorithm)
{
    struct product product = {SHAPE, scalar_type(compute, type_c),
                              MATRIX(a, lda, stride_a, count, blas_element_bytes(type_a)),
                              MATRIX(b, ldb, stride_b, count, blas_element_bytes(type_b)),
                              MATRIX(c, ldc, stride_c, count, blas_element_bytes(type_c))};

    CARRY_OUT(cublasGemmStridedBatchedEx, product,
              (handle, transpose_a, transpose_b, m, n, k, alpha, a, type_a, lda, stride_a, b,
               type_b, ldb, stride_b, beta, c, type_c, ldc, stride_c, count, compute, algorithm));
}
