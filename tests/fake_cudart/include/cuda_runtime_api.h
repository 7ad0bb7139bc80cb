/* The runtime as the cuda device sees it over the fake, as in cuda.h. */
#ifndef CAPU_TESTS_FAKE_CUDA_RUNTIME_API_H
#define CAPU_TESTS_FAKE_CUDA_RUNTIME_API_H

#include "cuda.h"
#include "tests/ptx/include/cudart_types.h"

/* The newest major version that the device knows: of those of its calls that versions differ in,
   the fake has the newest. */
#define CUDART_VERSION 13000

typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;

#define FAKE_CUDA_DECLARATION(name, parameters) cudaError_t name parameters;
FAKE_CUDA_CALLS(FAKE_CUDA_DECLARATION)
FAKE_CUDA_13_CALLS(FAKE_CUDA_DECLARATION)
#undef FAKE_CUDA_DECLARATION

#endif
