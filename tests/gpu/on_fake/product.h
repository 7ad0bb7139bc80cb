/* The products that the stand-ins for cuBLAS and cublasLt compute, and what a handle knows. Part of
 * the stand-in for cublasLt, as in the real libraries, of which cuBLAS is the one that depends on
 * the other. */
#ifndef CAPU_TESTS_GPU_ON_FAKE_PRODUCT_H
#define CAPU_TESTS_GPU_ON_FAKE_PRODUCT_H

#include "tests/ptx/stand_in/cublas_v2.h"

/* A handle of cuBLAS, which is also one of cublasLt. */
struct cublasContext {
    int device;
    cudaStream_t stream;
    bool has_workspace;
    bool has_atomics;
    bool has_reduced_sums;
};

/* The arguments of a call that has been checked. Matrices are column-major. */
struct product {
    bool a_is_transposed;
    bool b_is_transposed;
    int64_t m;
    int64_t n;
    int64_t k;
    float alpha;
    const void *a;
    int64_t lda;
    const void *b;
    int64_t ldb;
    float beta;
    void *c;
    int64_t ldc;
    cudaDataType type; /* of a and b */
    cudaDataType c_type;
    const void *bias; /* m items of c_type, added to every column; NULL: none */
};

/* Computes the product when the stream reaches it. */
void product_enqueue(cudaStream_t stream, const struct product *product);

/* Whether the kernels use this combination of types, out of all that cuBLAS allows. Only fp32
   factors may be rounded first. */
bool product_types_match(cudaDataType a, cudaDataType b, cudaDataType c,
                         cublasComputeType_t arithmetic);

#endif
