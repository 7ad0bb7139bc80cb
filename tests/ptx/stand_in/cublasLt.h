/* Stands in for NVIDIA's header, as cuda_runtime.h beside it. */
#ifndef CAPU_TESTS_PTX_STAND_IN_CUBLAS_LT_H
#define CAPU_TESTS_PTX_STAND_IN_CUBLAS_LT_H

#include "cublas_v2.h"

extern "C" {
#include "tests/ptx/include/cublaslt_types.h"
}

#endif
