/* Products of matrices, and of a matrix and a vector. */
#include "tests/ptx/cublas/handle.h"

#include <stddef.h>

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType a_type,
                                          int lda, long long int a_stride, const void *b,
                                          cudaDataType b_type, int ldb, long long int b_stride,
                                          const void *beta, void *c, cudaDataType c_type, int ldc,
                                          long long int c_stride, int count,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    struct blas_product product = {
        .a = a,
        .b = b,
        .c = c,
        .d = c,
        .m = m,
        .n = n,
        .k = k,
        .ldc = ldc,
        .ldd = ldc,
        .a_type = a_type,
        .b_type = b_type,
        .c_type = c_type,
        .a_stride = a_stride,
        .b_stride = b_stride,
        .c_stride = c_stride,
        .d_stride = c_stride,
    };
    cublasStatus_t status;

    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (compute == CUBLAS_COMPUTE_64F && a_type == CUDA_R_64F && b_type == CUDA_R_64F &&
        c_type == CUDA_R_64F) {
        return cublasDgemmStridedBatched(handle, transa, transb, m, n, k, alpha, a, lda, a_stride,
                                         b, ldb, b_stride, beta, c, ldc, c_stride, count);
    }
    (void)algorithm;
    status =
        blas_form(&product, handle->pointer_mode, compute, transa, lda, transb, ldb, alpha, beta);
    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    handle_open_workspace(handle);
    return blas_multiply(product, count, handle->stream);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType a_type, int lda, const void *b,
                            cudaDataType b_type, int ldb, const void *beta, void *c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm)
{
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, a, a_type, lda, 0, b,
                                      b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute,
                                      algorithm);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const float *alpha, const float *a, int lda,
                                         long long int a_stride, const float *b, int ldb,
                                         long long int b_stride, const float *beta, float *c,
                                         int ldc, long long int c_stride, int count)
{
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, a, CUDA_R_32F, lda,
                                      a_stride, b, CUDA_R_32F, ldb, b_stride, beta, c, CUDA_R_32F,
                                      ldc, c_stride, count, CUBLAS_COMPUTE_32F, -1);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
                              cublasOperation_t transb, int m, int n, int k, const float *alpha,
                              const float *a, int lda, const float *b, int ldb, const float *beta,
                              float *c, int ldc)
{
    return cublasSgemmStridedBatched(handle, transa, transb, m, n, k, alpha, a, lda, 0, b, ldb, 0,
                                     beta, c, ldc, 0, 1);
}

/* A product with the transposed vector as a matrix of one row, so that its step is a leading
 * dimension. */
cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                              const float *alpha, const float *a, int lda, const float *x,
                              int x_step, const float *beta, float *y, int y_step)
{
    int rows = trans == CUBLAS_OP_N ? m : n;
    int inner = trans == CUBLAS_OP_N ? n : m;

    if (x_step < 1 || y_step < 1) {
        return x_step == 0 || y_step == 0 ? CUBLAS_STATUS_INVALID_VALUE
                                          : CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return cublasSgemm_v2(handle, CUBLAS_OP_N, trans == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N, 1,
                          rows, inner, alpha, x, x_step, a, lda, beta, y, y_step);
}
