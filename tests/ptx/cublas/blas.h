/*
 * What libcublas and libcublasLt of these tests share: kernels of their own, launched through the
 * driver as those of NVIDIA's libraries are, so that a library in front of the driver sees launches
 * of a library.
 */
#ifndef CAPU_TESTS_PTX_BLAS_H
#define CAPU_TESTS_PTX_BLAS_H

#include "tests/ptx/client/driver_table.h"
#include "tests/ptx/include/cublas_types.h"

#include <stdbool.h>

enum blas_kernel {
    BLAS_GEMM,
    BLAS_GEMM_POINTERS,
    BLAS_GEMM_F64,
    BLAS_VECTOR,
    BLAS_REDUCE,
    BLAS_MATRIX,
    BLAS_KERNELS
};

/* The parameter of capuchin_gemm, see kernels.cu. */
struct blas_product {
    const void *a, *b;
    const void *c;
    void *d;
    const float *alpha_at, *beta_at;
    const void *bias;
    void *aux;
    float alpha, beta;
    int m, n, k;
    int a_row, a_column, b_row, b_column;
    int ldc, ldd, aux_ld;
    unsigned a_type, b_type, c_type, bias_type;
    unsigned epilogue;
    long long a_stride, b_stride, c_stride, d_stride;
};

/* Finds the driver and loads the kernels, if that has not happened yet; makes the primary context
   current if none is. */
cublasStatus_t blas_enter(void);
/* Pre for all that follow: entered. */
const struct driver_table *blas_driver(void);
cublasStatus_t blas_launch(enum blas_kernel kernel, const unsigned grid[3], const unsigned block[3],
                           CUstream stream, void **arguments);

/* Strides of op(X) for a matrix with that leading dimension: from row to row, column to column. */
void blas_strides(cublasOperation_t operation, int ld, int *row, int *column);
/* Sets alpha and beta of a product from pointers in either mode. False: not for this type of
   computation, or for its scalars on the device. */
bool blas_scalars(struct blas_product *product, cublasPointerMode_t mode,
                  cublasComputeType_t compute, const void *alpha, const void *beta);
/* Both for a product whose sizes are set, after checking the operations, leading dimensions and
   scalars. Errors: INVALID_VALUE, NOT_SUPPORTED (as blas_scalars). */
cublasStatus_t blas_form(struct blas_product *product, cublasPointerMode_t mode,
                         cublasComputeType_t compute, cublasOperation_t transa, int lda,
                         cublasOperation_t transb, int ldb, const void *alpha, const void *beta);
/* Launches `count` products. */
cublasStatus_t blas_multiply(struct blas_product product, int count, CUstream stream);

/* Pointers to the matrices of each product, in device memory. */
struct blas_arrays {
    const void *const *a, *const *b;
    void *const *c;
};
/* The same for products whose matrices these point to; NULL: strides apart. */
cublasStatus_t blas_multiply_arrays(struct blas_product product, const struct blas_arrays *arrays,
                                    int count, CUstream stream);

#endif
