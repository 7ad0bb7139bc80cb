/* Products of doubles and of halves, and of matrices that arrays of pointers name. */
#include "tests/ptx/cublas/handle.h"

#include <stddef.h>

cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const double *alpha, const double *a, int lda,
                                         long long int a_stride, const double *b, int ldb,
                                         long long int b_stride, const double *beta, double *c,
                                         int ldc, long long int c_stride, int count)
{
    enum { SIDE = 16 };
    /* The parameter of capuchin_gemm_f64. */
    struct {
        const double *a, *b;
        double *c;
        double alpha, beta;
        int m, n, k;
        int a_row, a_column, b_row, b_column;
        int ldc;
        long long a_stride, b_stride, c_stride;
    } product = {.a = a,
                 .b = b,
                 .c = c,
                 .m = m,
                 .n = n,
                 .k = k,
                 .ldc = ldc,
                 .a_stride = a_stride,
                 .b_stride = b_stride,
                 .c_stride = c_stride};
    const unsigned grid[] = {((unsigned)m + SIDE - 1) / SIDE, ((unsigned)n + SIDE - 1) / SIDE,
                             (unsigned)count};
    const unsigned block[] = {SIDE, SIDE, 1};
    void *arguments[] = {&product};

    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (alpha == NULL || beta == NULL || m < 0 || n < 0 || k < 0 || count < 0 || ldc < m ||
        transa > CUBLAS_OP_C || transb > CUBLAS_OP_C || lda < (transa == CUBLAS_OP_N ? m : k) ||
        ldb < (transb == CUBLAS_OP_N ? k : n)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (handle->pointer_mode != CUBLAS_POINTER_MODE_HOST) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (m == 0 || n == 0 || count == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    product.alpha = *alpha;
    product.beta = *beta;
    blas_strides(transa, lda, &product.a_row, &product.a_column);
    blas_strides(transb, ldb, &product.b_row, &product.b_column);
    return blas_launch(BLAS_GEMM_F64, grid, block, handle->stream, arguments);
}

cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
                              cublasOperation_t transb, int m, int n, int k, const double *alpha,
                              const double *a, int lda, const double *b, int ldb,
                              const double *beta, double *c, int ldc)
{
    return cublasDgemmStridedBatched(handle, transa, transb, m, n, k, alpha, a, lda, 0, b, ldb, 0,
                                     beta, c, ldc, 0, 1);
}

cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const __half *alpha, const __half *a, int lda,
                                         long long int a_stride, const __half *b, int ldb,
                                         long long int b_stride, const __half *beta, __half *c,
                                         int ldc, long long int c_stride, int count)
{
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, a, CUDA_R_16F, lda,
                                      a_stride, b, CUDA_R_16F, ldb, b_stride, beta, c, CUDA_R_16F,
                                      ldc, c_stride, count, CUBLAS_COMPUTE_16F, -1);
}

cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const __half *alpha,
                           const __half *a, int lda, const __half *b, int ldb, const __half *beta,
                           __half *c, int ldc)
{
    return cublasHgemmStridedBatched(handle, transa, transb, m, n, k, alpha, a, lda, 0, b, ldb, 0,
                                     beta, c, ldc, 0, 1);
}

cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa,
                             cublasOperation_t transb, int m, int n, int k, const float *alpha,
                             const void *a, cudaDataType a_type, int lda, const void *b,
                             cudaDataType b_type, int ldb, const float *beta, void *c,
                             cudaDataType c_type, int ldc)
{
    return cublasGemmEx(handle, transa, transb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb,
                        beta, c, c_type, ldc, CUBLAS_COMPUTE_32F, -1);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                   cublasOperation_t transb, int m, int n, int k, const void *alpha,
                                   const void *const a[], cudaDataType a_type, int lda,
                                   const void *const b[], cudaDataType b_type, int ldb,
                                   const void *beta, void *const c[], cudaDataType c_type, int ldc,
                                   int count, cublasComputeType_t compute,
                                   cublasGemmAlgo_t algorithm)
{
    struct blas_product product = {
        .m = m,
        .n = n,
        .k = k,
        .ldc = ldc,
        .ldd = ldc,
        .a_type = a_type,
        .b_type = b_type,
        .c_type = c_type,
    };
    const struct blas_arrays arrays = {a, b, c};
    cublasStatus_t status;

    (void)algorithm;
    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    status =
        blas_form(&product, handle->pointer_mode, compute, transa, lda, transb, ldb, alpha, beta);
    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    return blas_multiply_arrays(product, &arrays, count, handle->stream);
}

cublasStatus_t cublasSgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k, const float *alpha,
                                  const float *const a[], int lda, const float *const b[], int ldb,
                                  const float *beta, float *const c[], int ldc, int count)
{
    return cublasGemmBatchedEx(handle, transa, transb, m, n, k, alpha, (const void *const *)a,
                               CUDA_R_32F, lda, (const void *const *)b, CUDA_R_32F, ldb, beta,
                               (void *const *)c, CUDA_R_32F, ldc, count, CUBLAS_COMPUTE_32F, -1);
}

cublasStatus_t cublasHgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k,
                                  const __half *alpha, const __half *const a[], int lda,
                                  const __half *const b[], int ldb, const __half *beta,
                                  __half *const c[], int ldc, int count)
{
    return cublasGemmBatchedEx(handle, transa, transb, m, n, k, alpha, (const void *const *)a,
                               CUDA_R_16F, lda, (const void *const *)b, CUDA_R_16F, ldb, beta,
                               (void *const *)c, CUDA_R_16F, ldc, count, CUBLAS_COMPUTE_16F, -1);
}
