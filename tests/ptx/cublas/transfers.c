/* Copies of vectors and matrices between host and device, which return when they are done. */
#include "tests/ptx/cublas/blas.h"

#include <stddef.h>
#include <stdint.h>

/* Columns of `row_bytes`, a pitch apart on either side. */
static cublasStatus_t copy(const void *from, size_t from_pitch, void *to, size_t to_pitch,
                           size_t row_bytes, size_t rows, bool is_to_device)
{
    CUDA_MEMCPY2D shape = {
        .srcMemoryType = is_to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcHost = is_to_device ? from : NULL,
        .srcDevice = is_to_device ? 0 : (uintptr_t)from,
        .srcPitch = from_pitch,
        .dstMemoryType = is_to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .dstHost = is_to_device ? NULL : to,
        .dstDevice = is_to_device ? (uintptr_t)to : 0,
        .dstPitch = to_pitch,
        .WidthInBytes = row_bytes,
        .Height = rows,
    };
    cublasStatus_t status = blas_enter();

    if (status != CUBLAS_STATUS_SUCCESS || rows == 0 || row_bytes == 0) {
        return status;
    }
    return blas_driver()->cuMemcpy2D(&shape) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS
                                                             : CUBLAS_STATUS_INTERNAL_ERROR;
}

/* Elements that follow one another are one column; others a column each. */
static cublasStatus_t copy_vector(int n, int element_bytes, const void *from, int from_step,
                                  void *to, int to_step, bool is_to_device)
{
    size_t bytes = (size_t)element_bytes;

    if (n < 0 || element_bytes <= 0 || from_step < 1 || to_step < 1) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (from_step == 1 && to_step == 1) {
        return copy(from, bytes * (size_t)n, to, bytes * (size_t)n, bytes * (size_t)n, 1,
                    is_to_device);
    }
    return copy(from, bytes * (size_t)from_step, to, bytes * (size_t)to_step, bytes, (size_t)n,
                is_to_device);
}

static cublasStatus_t copy_matrix(int rows, int columns, int element_bytes, const void *from,
                                  int from_ld, void *to, int to_ld, bool is_to_device)
{
    size_t bytes = (size_t)element_bytes;

    if (rows < 0 || columns < 0 || element_bytes <= 0 || from_ld < rows || to_ld < rows) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return copy(from, bytes * (size_t)from_ld, to, bytes * (size_t)to_ld, bytes * (size_t)rows,
                (size_t)columns, is_to_device);
}

cublasStatus_t cublasSetVector(int n, int element_bytes, const void *x, int x_step, void *y,
                               int y_step)
{
    return copy_vector(n, element_bytes, x, x_step, y, y_step, true);
}

cublasStatus_t cublasGetVector(int n, int element_bytes, const void *x, int x_step, void *y,
                               int y_step)
{
    return copy_vector(n, element_bytes, x, x_step, y, y_step, false);
}

cublasStatus_t cublasSetMatrix(int rows, int columns, int element_bytes, const void *a, int lda,
                               void *b, int ldb)
{
    return copy_matrix(rows, columns, element_bytes, a, lda, b, ldb, true);
}

cublasStatus_t cublasGetMatrix(int rows, int columns, int element_bytes, const void *a, int lda,
                               void *b, int ldb)
{
    return copy_matrix(rows, columns, element_bytes, a, lda, b, ldb, false);
}
