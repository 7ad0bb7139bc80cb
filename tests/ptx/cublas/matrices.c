/* Sums of matrices, and outer products added to one. */
#include "tests/ptx/cublas/handle.h"

#include <stddef.h>

/* The parameter of capuchin_matrix, see kernels.cu. */
struct combination {
    const float *alpha_at, *beta_at;
    float alpha, beta;
    const float *a, *b;
    float *c;
    int m, n;
    int a_row, a_column, b_row, b_column;
    int ldc;
    int is_outer;
};

/* `beta` NULL: there is none. */
static cublasStatus_t combine(cublasHandle_t handle, struct combination combination,
                              const float *alpha, const float *beta)
{
    enum { SIDE = 16 };
    const unsigned grid[] = {((unsigned)combination.m + SIDE - 1) / SIDE,
                             ((unsigned)combination.n + SIDE - 1) / SIDE, 1};
    const unsigned block[] = {SIDE, SIDE, 1};
    void *arguments[] = {&combination};

    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (combination.m < 0 || combination.n < 0 || combination.ldc < combination.m) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (combination.m == 0 || combination.n == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
        combination.alpha_at = alpha;
        combination.beta_at = beta;
    } else {
        combination.alpha = *alpha;
        combination.beta = beta != NULL ? *beta : 0;
    }
    return blas_launch(BLAS_MATRIX, grid, block, handle->stream, arguments);
}

/* Steps must be positive here. */
cublasStatus_t cublasSger_v2(cublasHandle_t handle, int m, int n, const float *alpha,
                             const float *x, int x_step, const float *y, int y_step, float *a,
                             int lda)
{
    struct combination combination = {.a = x,
                                      .b = y,
                                      .c = a,
                                      .m = m,
                                      .n = n,
                                      .a_row = x_step,
                                      .b_column = y_step,
                                      .ldc = lda,
                                      .is_outer = 1};

    return alpha == NULL || x_step < 1 || y_step < 1 ? CUBLAS_STATUS_INVALID_VALUE
                                                     : combine(handle, combination, alpha, NULL);
}

cublasStatus_t cublasSgeam(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, const float *alpha,
                           const float *a, int lda, const float *beta, const float *b, int ldb,
                           float *c, int ldc)
{
    struct combination combination = {.a = a, .b = b, .c = c, .m = m, .n = n, .ldc = ldc};

    if (alpha == NULL || beta == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    blas_strides(transa, lda, &combination.a_row, &combination.a_column);
    blas_strides(transb, ldb, &combination.b_row, &combination.b_column);
    return combine(handle, combination, alpha, beta);
}
