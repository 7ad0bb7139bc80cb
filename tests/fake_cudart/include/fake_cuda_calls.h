/*
 * The part of CUDA that the cuda device uses, as lists of enumerators, struct layouts and calls.
 * The other headers in this folder are generated from the lists. Where NVIDIA's headers are
 * installed, headers_check.c compares the two.
 *
 * The names are NVIDIA's, since this is their interface.
 */
#ifndef CAPU_TESTS_FAKE_CUDA_CALLS_H
#define CAPU_TESTS_FAKE_CUDA_CALLS_H

/* X(name, value) */
#define FAKE_CUDA_ERRORS(X)                      \
    X(cudaSuccess, 0)                            \
    X(cudaErrorInvalidValue, 1)                  \
    X(cudaErrorMemoryAllocation, 2)              \
    X(cudaErrorCudartUnloading, 4)               \
    X(cudaErrorInsufficientDriver, 35)           \
    X(cudaErrorDevicesUnavailable, 46)           \
    X(cudaErrorNoDevice, 100)                    \
    X(cudaErrorInvalidDevice, 101)               \
    X(cudaErrorAlreadyMapped, 208)               \
    X(cudaErrorECCUncorrectable, 214)            \
    X(cudaErrorNvlinkUncorrectable, 220)         \
    X(cudaErrorInvalidResourceHandle, 400)       \
    X(cudaErrorIllegalState, 401)                \
    X(cudaErrorSymbolNotFound, 500)              \
    X(cudaErrorNotReady, 600)                    \
    X(cudaErrorIllegalAddress, 700)              \
    X(cudaErrorLaunchTimeout, 702)               \
    X(cudaErrorContextIsDestroyed, 709)          \
    X(cudaErrorAssert, 710)                      \
    X(cudaErrorHostMemoryAlreadyRegistered, 712) \
    X(cudaErrorHostMemoryNotRegistered, 713)     \
    X(cudaErrorHardwareStackError, 714)          \
    X(cudaErrorIllegalInstruction, 715)          \
    X(cudaErrorMisalignedAddress, 716)           \
    X(cudaErrorInvalidAddressSpace, 717)         \
    X(cudaErrorInvalidPc, 718)                   \
    X(cudaErrorLaunchFailure, 719)               \
    X(cudaErrorNotSupported, 801)                \
    X(cudaErrorMpsClientTerminated, 810)         \
    X(cudaErrorStreamCaptureUnsupported, 900)    \
    X(cudaErrorStreamCaptureInvalidated, 901)    \
    X(cudaErrorStreamCaptureMerge, 902)          \
    X(cudaErrorStreamCaptureUnmatched, 903)      \
    X(cudaErrorStreamCaptureUnjoined, 904)       \
    X(cudaErrorStreamCaptureIsolation, 905)      \
    X(cudaErrorCapturedEvent, 907)               \
    X(cudaErrorStreamCaptureWrongThread, 908)    \
    X(cudaErrorGraphExecUpdateFailure, 910)      \
    X(cudaErrorExternalDevice, 911)              \
    X(cudaErrorUnknown, 999)

#define FAKE_CUDA_MEMCPY_KINDS(X) \
    X(cudaMemcpyHostToDevice, 1)  \
    X(cudaMemcpyDeviceToHost, 2)  \
    X(cudaMemcpyDeviceToDevice, 3)

#define FAKE_CUDA_CAPTURE_STATUSES(X)   \
    X(cudaStreamCaptureStatusNone, 0)   \
    X(cudaStreamCaptureStatusActive, 1) \
    X(cudaStreamCaptureStatusInvalidated, 2)
#define FAKE_CUDA_CAPTURE_MODES(X)         \
    X(cudaStreamCaptureModeGlobal, 0)      \
    X(cudaStreamCaptureModeThreadLocal, 1) \
    X(cudaStreamCaptureModeRelaxed, 2)
#define FAKE_CUDA_UPDATE_RESULTS(X)               \
    X(cudaGraphExecUpdateSuccess, 0)              \
    X(cudaGraphExecUpdateError, 1)                \
    X(cudaGraphExecUpdateErrorTopologyChanged, 2) \
    X(cudaGraphExecUpdateErrorNodeTypeChanged, 3) \
    X(cudaGraphExecUpdateErrorParametersChanged, 5)

#define FAKE_CUDA_DEVICE_ATTRIBUTES(X) X(cudaDevAttrHostNumaId, 134)
#define FAKE_CUDA_ENTRY_POINT_FLAGS(X) X(cudaEnableDefault, 0)
#define FAKE_CUDA_ENTRY_POINT_RESULTS(X)     \
    X(cudaDriverEntryPointSuccess, 0)        \
    X(cudaDriverEntryPointSymbolNotFound, 1) \
    X(cudaDriverEntryPointVersionNotSufficent, 2)

/* These are macros in NVIDIA's headers. */
#define FAKE_CUDA_FLAGS(X)         \
    X(cudaHostAllocPortable, 1)    \
    X(cudaHostRegisterPortable, 1) \
    X(cudaStreamNonBlocking, 1)    \
    X(cudaEventDefault, 0)         \
    X(cudaEventRecordDefault, 0)   \
    X(cudaEventRecordExternal, 1)  \
    X(cudaEventDisableTiming, 2)

/* The errors of the driver that the fake returns. They have the same numbers as the runtime's. */
#define FAKE_DRIVER_ERRORS(X)          \
    X(CUDA_SUCCESS, 0)                 \
    X(CUDA_ERROR_INVALID_VALUE, 1)     \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)     \
    X(CUDA_ERROR_INVALID_DEVICE, 101)  \
    X(CUDA_ERROR_ALREADY_MAPPED, 208)  \
    X(CUDA_ERROR_NOT_READY, 600)       \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700) \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)

#define FAKE_DRIVER_LOCATION_TYPES(X) X(CU_MEM_LOCATION_TYPE_DEVICE, 1)
#define FAKE_DRIVER_ALLOCATION_TYPES(X) X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)
#define FAKE_DRIVER_HANDLE_TYPES(X) \
    X(CU_MEM_HANDLE_TYPE_NONE, 0)   \
    X(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)
#define FAKE_DRIVER_ACCESS_FLAGS(X)     \
    X(CU_MEM_ACCESS_FLAGS_PROT_NONE, 0) \
    X(CU_MEM_ACCESS_FLAGS_PROT_READ, 1) \
    X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)
#define FAKE_DRIVER_GRANULARITIES(X) X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)
#define FAKE_DRIVER_WAIT_FLAGS(X)  \
    X(CU_STREAM_WAIT_VALUE_GEQ, 0) \
    X(CU_STREAM_WAIT_VALUE_EQ, 1)  \
    X(CU_STREAM_WAIT_VALUE_AND, 2) \
    X(CU_STREAM_WAIT_VALUE_NOR, 3)

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
    X(cudaGetDeviceCount, (int *count))                                                            \
    X(cudaSetDevice, (int ordinal))                                                                \
    X(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attribute, int ordinal))            \
    X(cudaDeviceCanAccessPeer, (int *can, int ordinal, int peer))                                  \
    X(cudaDeviceSynchronize, (void))                                                               \
    X(cudaMemGetInfo, (size_t * free_bytes, size_t * total_bytes))                                 \
    X(cudaGetDriverEntryPointByVersion,                                                            \
      (const char *symbol, void **entry, unsigned int version, unsigned long long flags,           \
       enum cudaDriverEntryPointQueryResult *result))                                              \
    X(cudaHostRegister, (void *address, size_t bytes, unsigned int flags))                         \
    X(cudaHostUnregister, (void *address))                                                         \
    X(cudaHostAlloc, (void **address, size_t bytes, unsigned int flags))                           \
    X(cudaFreeHost, (void *address))                                                               \
    X(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags))                      \
    X(cudaStreamDestroy, (cudaStream_t stream))                                                    \
    X(cudaStreamSynchronize, (cudaStream_t stream))                                                \
    X(cudaStreamQuery, (cudaStream_t stream))                                                      \
    X(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags))           \
    X(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags))                         \
    X(cudaEventDestroy, (cudaEvent_t event))                                                       \
    X(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream))                                   \
    X(cudaEventQuery, (cudaEvent_t event))                                                         \
    X(cudaEventSynchronize, (cudaEvent_t event))                                                   \
    X(cudaEventElapsedTime, (float *ms, cudaEvent_t from, cudaEvent_t to))                         \
    X(cudaMemcpyAsync,                                                                             \
      (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream))   \
    X(cudaMemsetAsync, (void *to, int byte, size_t bytes, cudaStream_t stream))                    \
    X(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags))      \
    X(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode))              \
    X(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t * graph))                            \
    X(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus * status))         \
    X(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode))                    \
    X(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t * nodes, size_t * count))             \
    X(cudaGraphDestroy, (cudaGraph_t graph))                                                       \
    X(cudaGraphInstantiate,                                                                        \
      (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags))                 \
    X(cudaGraphExecUpdate,                                                                         \
      (cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo * result))     \
    X(cudaGraphExecMemcpyNodeSetParams1D,                                                          \
      (cudaGraphExec_t executable, cudaGraphNode_t node, void *to, const void *from, size_t bytes, \
       enum cudaMemcpyKind kind))                                                                  \
    X(cudaGraphLaunch, (cudaGraphExec_t executable, cudaStream_t stream))                          \
    X(cudaGraphExecDestroy, (cudaGraphExec_t executable))

/* The same for calls that were changed in CUDA 13. */
#define FAKE_CUDA_13_CALLS(X)                                                              \
    X(cudaStreamGetCaptureInfo,                                                            \
      (cudaStream_t stream, enum cudaStreamCaptureStatus * status, unsigned long long *id, \
       cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, \
       size_t *count))

/* X(type, name, parameters): calls of the runtime that cannot fail. */
#define FAKE_CUDA_ERROR_CALLS(X)                           \
    X(cudaError_t, cudaGetLastError, (void))               \
    X(cudaError_t, cudaPeekAtLastError, (void))            \
    X(const char *, cudaGetErrorName, (cudaError_t error)) \
    X(const char *, cudaGetErrorString, (cudaError_t error))

/* The same for a call that is older than virtual memory, and that does not fail here. */
#define FAKE_DRIVER_CONTEXT_CALLS(X) X(cuCtxGetCurrent, (CUcontext * context))

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

/* The same for a call that has had its present form since CUDA 11.7. */
#define FAKE_DRIVER_WAIT_CALLS(X) \
    X(cuStreamWaitValue32,        \
      (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags))

#endif
