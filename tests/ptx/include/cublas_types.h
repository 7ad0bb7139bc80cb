/* The types of cuBLAS, as far as the calls in cublas_calls.h use them. */
#ifndef CAPU_TESTS_PTX_CUBLAS_TYPES_H
#define CAPU_TESTS_PTX_CUBLAS_TYPES_H

#include "tests/ptx/include/cublas_calls.h"
#include "tests/ptx/include/cudart_types.h"

#define CUBLAS_ENUMERATOR(name, number) name = (number),
enum { CUBLAS_VALUES(CUBLAS_ENUMERATOR) };
typedef enum { CUBLAS_COMPUTE_TYPES(CUBLAS_ENUMERATOR) } cublasComputeType_t;
#undef CUBLAS_ENUMERATOR

typedef unsigned cublasStatus_t;
typedef unsigned cublasOperation_t;
typedef unsigned cublasMath_t;
typedef unsigned cublasPointerMode_t;
typedef unsigned cublasAtomicsMode_t;
typedef int cublasGemmAlgo_t; /* the default is negative */
typedef unsigned cudaDataType;
typedef cudaDataType cudaDataType_t;
typedef uint16_t __half; /* its bits */

typedef struct cublasContext *cublasHandle_t;

#define CUBLAS_API __attribute__((visibility("default")))
#define CUBLAS_DECLARE(name, parameters) CUBLAS_API cublasStatus_t name parameters;
CUBLAS_CALLS(CUBLAS_DECLARE)
#undef CUBLAS_DECLARE
CUBLAS_API const char *cublasGetStatusString(cublasStatus_t status);
CUBLAS_API const char *cublasGetStatusName(cublasStatus_t status);

#endif
