/* Calls with sizes of 64 bits. What needs them is not supported. */
#include "tests/ptx/cublas/blas.h"

#include <limits.h>

static bool fits(int64_t number)
{
    return number >= INT_MIN && number <= INT_MAX;
}

cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m, int64_t n,
    int64_t k, const void *alpha, const void *a, cudaDataType a_type, int64_t lda,
    long long int a_stride, const void *b, cudaDataType b_type, int64_t ldb, long long int b_stride,
    const void *beta, void *c, cudaDataType c_type, int64_t ldc, long long int c_stride,
    int64_t count, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    if (!fits(m) || !fits(n) || !fits(k) || !fits(lda) || !fits(ldb) || !fits(ldc) ||
        !fits(count)) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return cublasGemmStridedBatchedEx(handle, transa, transb, (int)m, (int)n, (int)k, alpha, a,
                                      a_type, (int)lda, a_stride, b, b_type, (int)ldb, b_stride,
                                      beta, c, c_type, (int)ldc, c_stride, (int)count, compute,
                                      algorithm);
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t transa,
                               cublasOperation_t transb, int64_t m, int64_t n, int64_t k,
                               const void *alpha, const void *a, cudaDataType a_type, int64_t lda,
                               const void *b, cudaDataType b_type, int64_t ldb, const void *beta,
                               void *c, cudaDataType c_type, int64_t ldc,
                               cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    return cublasGemmStridedBatchedEx_64(handle, transa, transb, m, n, k, alpha, a, a_type, lda, 0,
                                         b, b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute,
                                         algorithm);
}
