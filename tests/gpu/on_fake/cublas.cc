/*
 * Stands in for cuBLAS: matrix products by its rules, in column-major order, with leading
 * dimensions checked. It is stricter where the results of the kernels would not be repeatable: a
 * call fails if the handle got no workspace since its stream was set, if it allows atomics or
 * reduced-precision sums, or if the types cannot be combined. A handle belongs to the device that
 * was current when it was created, and rejects a stream of another device. A product is computed
 * when its stream reaches it.
 */
#include "tests/gpu/on_fake/product.h"

static const void *step(const void *items, cudaDataType type, int64_t by)
{
    return (const char *)items +
           by * (int64_t)(type == CUDA_R_16BF ? sizeof(uint16_t) : sizeof(float));
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    int device = 0;

    cudaGetDevice(&device);
    *handle = new cublasContext{device, NULL, false, true, true};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    int device = 0;

    cudaStreamGetDevice(stream, &device);
    if (device != handle->device) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
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

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    handle->has_reduced_sums = mode != CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t a_operation,
                               cublasOperation_t b_operation, int64_t m, int64_t n, int64_t k,
                               const void *alpha, const void *a, cudaDataType a_type, int64_t lda,
                               const void *b, cudaDataType b_type, int64_t ldb, const void *beta,
                               void *c, cudaDataType c_type, int64_t ldc,
                               cublasComputeType_t arithmetic, cublasGemmAlgo_t)
{
    struct product product = {a_operation == CUBLAS_OP_T,
                              b_operation == CUBLAS_OP_T,
                              m,
                              n,
                              k,
                              *(const float *)alpha,
                              a,
                              lda,
                              b,
                              ldb,
                              *(const float *)beta,
                              c,
                              ldc,
                              a_type,
                              c_type,
                              NULL};

    if (!handle->has_workspace || handle->has_atomics || handle->has_reduced_sums ||
        !product_types_match(a_type, b_type, c_type, arithmetic) || ldc < m ||
        lda < (product.a_is_transposed ? k : m) || ldb < (product.b_is_transposed ? n : k)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    product_enqueue(handle->stream, &product);
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
        status = cublasGemmEx_64(
            handle, a_operation, b_operation, m, n, k, alpha, step(a, a_type, i * a_step), a_type,
            lda, step(b, b_type, i * b_step), b_type, ldb, beta,
            (void *)step(c, c_type, i * c_step), c_type, ldc, arithmetic, algorithm);
    }
    return status;
}
