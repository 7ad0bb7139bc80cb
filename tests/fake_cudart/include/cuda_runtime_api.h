/* The types and calls of the runtime that the cuda device uses, see fake_cuda_calls.h. */
#ifndef CAPU_TESTS_FAKE_CUDA_RUNTIME_API_H
#define CAPU_TESTS_FAKE_CUDA_RUNTIME_API_H

#include "cuda.h"

/* The newest major version that the device knows: of those of its calls that versions differ in,
   the fake has the newest. */
#define CUDART_VERSION 13000

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;

typedef enum cudaError { FAKE_CUDA_ERRORS(FAKE_CUDA_ENUMERATOR) } cudaError_t;
enum cudaMemcpyKind { FAKE_CUDA_MEMCPY_KINDS(FAKE_CUDA_ENUMERATOR) };
enum cudaDeviceAttr { FAKE_CUDA_DEVICE_ATTRIBUTES(FAKE_CUDA_ENUMERATOR) };
enum cudaDriverEntryPointQueryResult { FAKE_CUDA_ENTRY_POINT_RESULTS(FAKE_CUDA_ENUMERATOR) };
enum { FAKE_CUDA_ENTRY_POINT_FLAGS(FAKE_CUDA_ENUMERATOR) };
enum { FAKE_CUDA_FLAGS(FAKE_CUDA_ENUMERATOR) };
enum cudaStreamCaptureStatus { FAKE_CUDA_CAPTURE_STATUSES(FAKE_CUDA_ENUMERATOR) };
enum cudaStreamCaptureMode { FAKE_CUDA_CAPTURE_MODES(FAKE_CUDA_ENUMERATOR) };
enum cudaGraphExecUpdateResult { FAKE_CUDA_UPDATE_RESULTS(FAKE_CUDA_ENUMERATOR) };

typedef struct {
    enum cudaGraphExecUpdateResult result;
    cudaGraphNode_t errorNode;
    cudaGraphNode_t errorFromNode;
} cudaGraphExecUpdateResultInfo;

#define FAKE_CUDA_DECLARATION(name, parameters) cudaError_t name parameters;
FAKE_CUDA_CALLS(FAKE_CUDA_DECLARATION)
FAKE_CUDA_13_CALLS(FAKE_CUDA_DECLARATION)
#undef FAKE_CUDA_DECLARATION
#define FAKE_CUDA_DECLARATION(type, name, parameters) type name parameters;
FAKE_CUDA_ERROR_CALLS(FAKE_CUDA_DECLARATION)
#undef FAKE_CUDA_DECLARATION

#endif
