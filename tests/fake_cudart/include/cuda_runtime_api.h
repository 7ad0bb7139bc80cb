/* The types and calls of the runtime that the cuda device uses, see fake_cuda_calls.h. */
#ifndef CAPU_TESTS_FAKE_CUDA_RUNTIME_API_H
#define CAPU_TESTS_FAKE_CUDA_RUNTIME_API_H

#include "cuda.h"

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

typedef enum cudaError { FAKE_CUDA_ERRORS(FAKE_CUDA_ENUMERATOR) } cudaError_t;
enum cudaMemcpyKind { FAKE_CUDA_MEMCPY_KINDS(FAKE_CUDA_ENUMERATOR) };
enum cudaDeviceAttr { FAKE_CUDA_DEVICE_ATTRIBUTES(FAKE_CUDA_ENUMERATOR) };
enum cudaDriverEntryPointQueryResult { FAKE_CUDA_ENTRY_POINT_RESULTS(FAKE_CUDA_ENUMERATOR) };
enum { FAKE_CUDA_ENTRY_POINT_FLAGS(FAKE_CUDA_ENUMERATOR) };
enum { FAKE_CUDA_FLAGS(FAKE_CUDA_ENUMERATOR) };

#define FAKE_CUDA_DECLARATION(name, parameters) cudaError_t name parameters;
FAKE_CUDA_CALLS(FAKE_CUDA_DECLARATION)
#undef FAKE_CUDA_DECLARATION
#define FAKE_CUDA_DECLARATION(type, name, parameters) type name parameters;
FAKE_CUDA_ERROR_CALLS(FAKE_CUDA_DECLARATION)
#undef FAKE_CUDA_DECLARATION

#endif
