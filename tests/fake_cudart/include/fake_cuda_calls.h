/*
 * What the cuda device uses of CUDA and the libraries of tests/ptx do not have, as lists of
 * numbers, struct layouts and calls: mostly virtual memory. Everything else is in the lists of
 * tests/ptx/include. Where NVIDIA's headers are installed, headers_check.c compares the two.
 *
 * The names are NVIDIA's, since this is their interface.
 */
#ifndef CAPU_TESTS_FAKE_CUDA_CALLS_H
#define CAPU_TESTS_FAKE_CUDA_CALLS_H

/* X(name, value) */
#define FAKE_DRIVER_VALUES(X)                      \
    X(CU_MEM_LOCATION_TYPE_DEVICE, 1)              \
    X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)            \
    X(CU_MEM_HANDLE_TYPE_NONE, 0)                  \
    X(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1) \
    X(CU_MEM_ACCESS_FLAGS_PROT_NONE, 0)            \
    X(CU_MEM_ACCESS_FLAGS_PROT_READ, 1)            \
    X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)       \
    X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)

/* X(struct type, field, offset), and X(type, bytes) */
#define FAKE_DRIVER_FIELDS(X)                       \
    X(CUmemLocation, type, 0)                       \
    X(CUmemLocation, id, 4)                         \
    X(CUmemAllocationProp, type, 0)                 \
    X(CUmemAllocationProp, requestedHandleTypes, 4) \
    X(CUmemAllocationProp, location, 8)             \
    X(CUmemAllocationProp, win32HandleMetaData, 16) \
    X(CUmemAllocationProp, allocFlags, 24)          \
    X(CUmemAccessDesc, location, 0)                 \
    X(CUmemAccessDesc, flags, 8)
#define FAKE_DRIVER_SIZES(X)   \
    X(CUmemLocation, 8)        \
    X(CUmemAllocationProp, 32) \
    X(CUmemAccessDesc, 12)     \
    X(CUdeviceptr, 8)          \
    X(CUmemGenericAllocationHandle, 8)

/* X(name, parameters): calls of the runtime that return a cudaError_t. */
#define FAKE_CUDA_CALLS(X)                                                                         \
    X(cudaGetDriverEntryPointByVersion,                                                            \
      (const char *symbol, void **entry, unsigned int version, unsigned long long flags,           \
       enum cudaDriverEntryPointQueryResult *result))                                              \
    X(cudaGraphExecMemcpyNodeSetParams1D,                                                          \
      (cudaGraphExec_t executable, cudaGraphNode_t node, void *to, const void *from, size_t bytes, \
       enum cudaMemcpyKind kind))

/* The same for calls that were changed in CUDA 13. */
#define FAKE_CUDA_13_CALLS(X)                                                              \
    X(cudaStreamGetCaptureInfo,                                                            \
      (cudaStream_t stream, enum cudaStreamCaptureStatus * status, unsigned long long *id, \
       cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, \
       size_t *count))

/* X(name, parameters): calls of the driver that return a CUresult. */
#define FAKE_DRIVER_CALLS(X)                                                                       \
    X(cuMemGetAllocationGranularity, (size_t * granularity, const CUmemAllocationProp *properties, \
                                      CUmemAllocationGranularity_flags option))                    \
    X(cuMemCreate, (CUmemGenericAllocationHandle * handle, size_t bytes,                           \
                    const CUmemAllocationProp *properties, unsigned long long flags))              \
    X(cuMemRelease, (CUmemGenericAllocationHandle handle))                                         \
    X(cuMemMap, (CUdeviceptr address, size_t bytes, size_t offset,                                 \
                 CUmemGenericAllocationHandle handle, unsigned long long flags))                   \
    X(cuMemUnmap, (CUdeviceptr address, size_t bytes))                                             \
    X(cuMemSetAccess,                                                                              \
      (CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count))            \
    X(cuMemAddressReserve, (CUdeviceptr * address, size_t bytes, size_t alignment,                 \
                            CUdeviceptr hint, unsigned long long flags))                           \
    X(cuMemAddressFree, (CUdeviceptr address, size_t bytes))

/* The same for a call that is older than virtual memory, and that does not fail here. */
#define FAKE_DRIVER_CONTEXT_CALLS(X) X(cuCtxGetCurrent, (CUcontext * context))

/* The same for a call that has had its present form since CUDA 11.7. */
#define FAKE_DRIVER_WAIT_CALLS(X) \
    X(cuStreamWaitValue32,        \
      (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags))

#endif
