/*
 * cuBLAS's products by its own rules: column by column, leading dimensions checked. A handle that
 * was not given a workspace since its stream was set, or that allows atomics, refuses to work: its
 * results would not be repeatable. A product is done when its stream comes to it.
 */
#include <cublas_v2.h>

struct cublasContext {
    cudaStream_t stream;
    bool has_workspace;
    bool has_atomics;
};

/* What is left of a call when it has been checked; column by column. */
struct product {
    bool a_is_transposed;
    bool b_is_transposed;
    int64_t m;
    int64_t n;
    int64_t k;
    float alpha;
    const float *a;
    int64_t lda;
    const float *b;
    int64_t ldb;
    float beta;
    float *c;
    int64_t ldc;
};

static void multiply(const struct product &product)
{
    for (int64_t j = 0; j < product.n; j++) {
        for (int64_t i = 0; i < product.m; i++) {
            float *to = &product.c[j * product.ldc + i];
            double sum = 0.0;

            for (int64_t l = 0; l < product.k; l++) {
                double x = product.a_is_transposed ? product.a[i * product.lda + l]
                                                   : product.a[l * product.lda + i];
                double y = product.b_is_transposed ? product.b[l * product.ldb + j]
                                                   : product.b[j * product.ldb + l];

                sum += x * y;
            }
            sum *= product.alpha;
            *to = (float)(product.beta == 0.0f ? sum : sum + product.beta * *to);
        }
    }
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = new cublasContext{NULL, false, true};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
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
    struct product product = {a_operation == CUBLAS_OP_T,
                              b_operation == CUBLAS_OP_T,
                              m,
                              n,
                              k,
                              *(const float *)alpha,
                              (const float *)a,
                              lda,
                              (const float *)b,
                              ldb,
                              *(const float *)beta,
                              (float *)c,
                              ldc};

    if (!handle->has_workspace || handle->has_atomics || ldc < m ||
        lda < (product.a_is_transposed ? k : m) || ldb < (product.b_is_transposed ? n : k)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    emulation_enqueue(handle->stream, [=] { multiply(product); });
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
