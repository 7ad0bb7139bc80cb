/*
 * cuBLAS's products by its own rules: column by column, leading dimensions checked. A handle that
 * was not given a workspace since its stream was set, or that allows atomics, refuses to work: its
 * results would not be repeatable.
 */
#include <cublas_v2.h>

struct cublasContext {
    bool has_workspace;
    bool has_atomics;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = new cublasContext{false, true};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t)
{
    handle->has_workspace = false;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    handle->has_workspace = workspace != NULL && bytes > 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode)
{
    handle->has_atomics = mode == CUBLAS_ATOMICS_ALLOWED;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t a_operation,
                               cublasOperation_t b_operation, int64_t m, int64_t n, int64_t k,
                               const void *alpha, const void *a, cudaDataType, int64_t lda,
                               const void *b, cudaDataType, int64_t ldb, const void *beta, void *c,
                               cudaDataType, int64_t ldc, cublasComputeType_t, cublasGemmAlgo_t)
{
    const float *left = (const float *)a;
    const float *right = (const float *)b;
    float *to = (float *)c;
    float keep = *(const float *)beta;

    if (!handle->has_workspace || handle->has_atomics || ldc < m ||
        lda < (a_operation == CUBLAS_OP_N ? m : k) || ldb < (b_operation == CUBLAS_OP_N ? k : n)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < m; i++) {
            double sum = 0.0;

            for (int64_t l = 0; l < k; l++) {
                double x = a_operation == CUBLAS_OP_N ? left[l * lda + i] : left[i * lda + l];
                double y = b_operation == CUBLAS_OP_N ? right[j * ldb + l] : right[l * ldb + j];

                sum += x * y;
            }
            sum *= *(const float *)alpha;
            to[j * ldc + i] = (float)(keep == 0.0f ? sum : sum + keep * to[j * ldc + i]);
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int64_t m,
    int64_t n, int64_t k, const void *alpha, const void *a, cudaDataType a_type, int64_t lda,
    long long a_step, const void *b, cudaDataType b_type, int64_t ldb, long long b_step,
    const void *beta, void *c, cudaDataType c_type, int64_t ldc, long long c_step, int64_t count,
    cublasComputeType_t arithmetic, cublasGemmAlgo_t algorithm)
{
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

    for (int64_t i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; i++) {
        status = cublasGemmEx_64(handle, a_operation, b_operation, m, n, k, alpha,
                                 (const float *)a + i * a_step, a_type, lda,
                                 (const float *)b + i * b_step, b_type, ldb, beta,
                                 (float *)c + i * c_step, c_type, ldc, arithmetic, algorithm);
    }
    return status;
}
