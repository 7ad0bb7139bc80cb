/* Compiled where NVIDIA's headers are installed: the functions of cuBLAS that the shim wraps have
   the parameters that they have there, or the declarations conflict. Those of cuBLASLt take
   descriptions that are opaque to the shim; those of halves are for C++ there. */
#include <cublas_v2.h>

#define cublasStatus_t own_status
#define cublasHandle_t own_handle
#include "shim/libraries/library_calls.h"
#undef cublasStatus_t
#undef cublasHandle_t

#define DECLARE(name, parameters, arguments) cublasStatus_t name parameters;
BLAS_WRAPPED(DECLARE)

#define SAME(own, theirs) _Static_assert((int)(own) == (int)(theirs), #own)
SAME(BLAS_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(BLAS_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(BLAS_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(BLAS_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(BLAS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(BLAS_NO_TRANSPOSE, CUBLAS_OP_N);
SAME(BLAS_POINTERS_ON_HOST, CUBLAS_POINTER_MODE_HOST);
