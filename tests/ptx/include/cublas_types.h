/* The types of cuBLAS and cuBLASLt, as far as the calls in cublas_calls.h use them. */
#ifndef CAPU_TESTS_PTX_CUBLAS_TYPES_H
#define CAPU_TESTS_PTX_CUBLAS_TYPES_H

#include "tests/ptx/include/cublas_calls.h"
#include "tests/ptx/include/cudart_types.h"

#define CUBLAS_ENUMERATOR(name, number) name = (number),
enum { CUBLAS_VALUES(CUBLAS_ENUMERATOR) };
#undef CUBLAS_ENUMERATOR

typedef unsigned cublasStatus_t;
typedef unsigned cublasOperation_t;
typedef unsigned cublasMath_t;
typedef unsigned cublasPointerMode_t;
typedef unsigned cublasAtomicsMode_t;
typedef unsigned cublasComputeType_t;
typedef int cublasGemmAlgo_t; /* the default is negative */
typedef unsigned cudaDataType;
typedef cudaDataType cudaDataType_t;
typedef uint16_t __half; /* its bits */
typedef unsigned cublasLtMatrixLayoutAttribute_t;
typedef unsigned cublasLtMatmulDescAttributes_t;
typedef unsigned cublasLtMatmulPreferenceAttributes_t;

typedef struct cublasContext *cublasHandle_t;
typedef struct cublasLtContext *cublasLtHandle_t;

typedef struct {
    cudaDataType type;
    int32_t order; /* by columns, always */
    uint64_t rows;
    uint64_t columns;
    int64_t ld;
    int32_t count;
    int64_t stride;
} * cublasLtMatrixLayout_t;

typedef struct {
    cublasComputeType_t compute;
    cudaDataType scale;
    uint32_t pointer_mode;
    uint32_t transa;
    uint32_t transb;
    uint32_t epilogue;
    const void *bias;
    int32_t bias_type; /* negative: that of d */
    void *aux;
    int64_t aux_ld;
} * cublasLtMatmulDesc_t;

typedef struct {
    uint64_t words[8];
} * cublasLtMatmulPreference_t;

typedef struct {
    uint64_t words[8];
} cublasLtMatmulAlgo_t;

typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

#define CUBLAS_API __attribute__((visibility("default")))
#define CUBLAS_DECLARE(name, parameters) CUBLAS_API cublasStatus_t name parameters;
CUBLAS_CALLS(CUBLAS_DECLARE)
CUBLASLT_CALLS(CUBLAS_DECLARE)
#undef CUBLAS_DECLARE
CUBLAS_API const char *cublasGetStatusString(cublasStatus_t status);
CUBLAS_API const char *cublasGetStatusName(cublasStatus_t status);

#endif
