/* Operations on vectors of floats. */
#include "tests/ptx/cublas/handle.h"

#include <stddef.h>

/* What the kernels do, see kernels.cu. */
enum { VECTOR_SCALE = 0, VECTOR_ADD = 1, VECTOR_COPY = 2, VECTOR_SWAP = 3, VECTOR_ROTATE = 4 };
enum { REDUCE_DOT = 0, REDUCE_NORM = 1, REDUCE_ABSOLUTE = 2, REDUCE_LARGEST = 3 };

/* Steps must be positive here. */
static cublasStatus_t check(cublasHandle_t handle, int x_step, int y_step)
{
    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    return x_step > 0 && y_step > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* The sine is on the host. */
static cublasStatus_t each(cublasHandle_t handle, int what, int n, const float *alpha,
                           const float *sine, const float *x, int x_step, float *y, int y_step)
{
    enum { THREADS = 256 };
    const unsigned grid[] = {((unsigned)n + THREADS - 1) / THREADS, 1, 1};
    const unsigned block[] = {THREADS, 1, 1};
    const float *alpha_at = NULL;
    float given = 0;
    float beta = sine != NULL ? *sine : 0;
    void *arguments[] = {&what, &n, &alpha_at, &given, &beta, &x, &x_step, &y, &y_step};
    cublasStatus_t status = check(handle, x_step, y_step);

    if (status != CUBLAS_STATUS_SUCCESS || n <= 0) {
        return status;
    }
    if (alpha != NULL && handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
        alpha_at = alpha;
    } else if (alpha != NULL) {
        given = *alpha;
    }
    return blas_launch(BLAS_VECTOR, grid, block, handle->stream, arguments);
}

cublasStatus_t cublasSscal_v2(cublasHandle_t handle, int n, const float *alpha, float *x,
                              int x_step)
{
    return alpha != NULL ? each(handle, VECTOR_SCALE, n, alpha, NULL, x, x_step, x, x_step)
                         : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float *alpha, const float *x,
                              int x_step, float *y, int y_step)
{
    return alpha != NULL ? each(handle, VECTOR_ADD, n, alpha, NULL, x, x_step, y, y_step)
                         : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasScopy_v2(cublasHandle_t handle, int n, const float *x, int x_step, float *y,
                              int y_step)
{
    return each(handle, VECTOR_COPY, n, NULL, NULL, x, x_step, y, y_step);
}

cublasStatus_t cublasSswap_v2(cublasHandle_t handle, int n, float *x, int x_step, float *y,
                              int y_step)
{
    return each(handle, VECTOR_SWAP, n, NULL, NULL, x, x_step, y, y_step);
}

cublasStatus_t cublasSrot_v2(cublasHandle_t handle, int n, float *x, int x_step, float *y,
                             int y_step, const float *cosine, const float *sine)
{
    if (cosine == NULL || sine == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return handle != NULL && handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE
               ? CUBLAS_STATUS_NOT_SUPPORTED
               : each(handle, VECTOR_ROTATE, n, cosine, sine, x, x_step, y, y_step);
}

/* A result on the host goes through the workspace, and the call waits for it. */
static cublasStatus_t reduce(cublasHandle_t handle, int what, int n, const float *x, int x_step,
                             const float *y, int y_step, void *result)
{
    static const unsigned one[] = {1, 1, 1};
    void *to = result;
    void *arguments[] = {&what, &n, &x, &x_step, &y, &y_step, &to};
    cublasStatus_t status = check(handle, x_step, y_step);
    bool is_on_host;

    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    is_on_host = handle->pointer_mode == CUBLAS_POINTER_MODE_HOST;
    if (is_on_host && handle->workspace_bytes < sizeof(float)) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    to = is_on_host ? handle->workspace : result;
    status = blas_launch(BLAS_REDUCE, one, one, handle->stream, arguments);
    if (status == CUBLAS_STATUS_SUCCESS && is_on_host &&
        (blas_driver()->cuMemcpyDtoHAsync(result, (uintptr_t)to, sizeof(float), handle->stream) !=
             CUDA_SUCCESS ||
         blas_driver()->cuStreamSynchronize(handle->stream) != CUDA_SUCCESS)) {
        status = CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return status;
}

cublasStatus_t cublasSdot_v2(cublasHandle_t handle, int n, const float *x, int x_step,
                             const float *y, int y_step, float *result)
{
    return reduce(handle, REDUCE_DOT, n, x, x_step, y, y_step, result);
}

cublasStatus_t cublasSnrm2_v2(cublasHandle_t handle, int n, const float *x, int x_step,
                              float *result)
{
    return reduce(handle, REDUCE_NORM, n, x, x_step, x, x_step, result);
}

cublasStatus_t cublasSasum_v2(cublasHandle_t handle, int n, const float *x, int x_step,
                              float *result)
{
    return reduce(handle, REDUCE_ABSOLUTE, n, x, x_step, x, x_step, result);
}

cublasStatus_t cublasIsamax_v2(cublasHandle_t handle, int n, const float *x, int x_step,
                               int *result)
{
    return reduce(handle, REDUCE_LARGEST, n, x, x_step, x, x_step, result);
}
