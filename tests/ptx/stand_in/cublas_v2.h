/* Stands in for NVIDIA's header, as cuda_runtime.h beside it. */
#ifndef CAPU_TESTS_PTX_STAND_IN_CUBLAS_V2_H
#define CAPU_TESTS_PTX_STAND_IN_CUBLAS_V2_H

#include "cuda_runtime.h"

/* No library is of this version: which one is loaded, a test has to say. */
#define CUBLAS_VER_MAJOR 0

extern "C" {
#include "tests/ptx/include/cublas_types.h"
}

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSetStream cublasSetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasSgemm cublasSgemm_v2

#endif
