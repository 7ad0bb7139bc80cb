/* The types of cuBLASLt, as far as the calls in cublas_calls.h use them. */
#ifndef CAPU_TESTS_PTX_CUBLASLT_TYPES_H
#define CAPU_TESTS_PTX_CUBLASLT_TYPES_H

#include "tests/ptx/include/cublas_types.h"

typedef unsigned cublasLtMatrixLayoutAttribute_t;
typedef unsigned cublasLtMatmulDescAttributes_t;
typedef unsigned cublasLtMatmulPreferenceAttributes_t;
typedef unsigned cublasLtEpilogue_t;

typedef struct cublasLtContext *cublasLtHandle_t;

typedef struct cublasLtMatrixLayout *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulDesc *cublasLtMatmulDesc_t;
typedef struct cublasLtMatmulPreference *cublasLtMatmulPreference_t;

typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

#define CUBLASLT_DECLARE(name, parameters) CUBLAS_API cublasStatus_t name parameters;
CUBLASLT_CALLS(CUBLASLT_DECLARE)
#undef CUBLASLT_DECLARE

#endif
