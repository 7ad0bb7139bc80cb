/*
 * The calls of CUDA's runtime that libcudart of these tests has, as lists. Declarations and
 * variants for the per-thread default stream are generated from them; headers_check.c compares them
 * with NVIDIA's headers where those are installed. The names are NVIDIA's, since this is their
 * interface.
 */
#ifndef CAPU_TESTS_PTX_CUDART_CALLS_H
#define CAPU_TESTS_PTX_CUDART_CALLS_H

/* X(name, parameters) */
#define CUDART_PLAIN_CALLS(X)                                                                      \
    X(cudaGetLastError, (void))                                                                    \
    X(cudaPeekAtLastError, (void))                                                                 \
    X(cudaDriverGetVersion, (int *version))                                                        \
    X(cudaRuntimeGetVersion, (int *version))                                                       \
    X(cudaGetDeviceCount, (int *count))                                                            \
    X(cudaGetDevice, (int *device))                                                                \
    X(cudaSetDevice, (int device))                                                                 \
    X(cudaInitDevice, (int device, unsigned int device_flags, unsigned int flags))                 \
    X(cudaSetDeviceFlags, (unsigned int flags))                                                    \
    X(cudaGetDeviceFlags, (unsigned int *flags))                                                   \
    X(cudaDeviceReset, (void))                                                                     \
    X(cudaDeviceSynchronize, (void))                                                               \
    X(cudaDeviceSetLimit, (enum cudaLimit limit, size_t value))                                    \
    X(cudaDeviceGetLimit, (size_t * value, enum cudaLimit limit))                                  \
    X(cudaDeviceSetCacheConfig, (enum cudaFuncCache config))                                       \
    X(cudaDeviceGetCacheConfig, (enum cudaFuncCache * config))                                     \
    X(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attribute, int device))             \
    X(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest))                               \
    X(cudaDeviceGetPCIBusId, (char *text, int bytes, int device))                                  \
    X(cudaDeviceCanAccessPeer, (int *can, int device, int peer))                                   \
    X(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device))                             \
    X(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value))  \
    X(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value))  \
    X(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t bytes))                                       \
    X(cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *properties))        \
    X(cudaMemPoolDestroy, (cudaMemPool_t pool))                                                    \
    X(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device))                                    \
    X(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool))                                      \
    X(cudaGetDeviceProperties, (struct cudaDeviceProp * properties, int device))                   \
    X(cudaMemGetInfo, (size_t * free_bytes, size_t * total_bytes))                                 \
    X(cudaMalloc, (void **address, size_t bytes))                                                  \
    X(cudaMallocManaged, (void **address, size_t bytes, unsigned int flags))                       \
    X(cudaMallocPitch, (void **address, size_t *pitch, size_t width, size_t height))               \
    X(cudaMalloc3D, (struct cudaPitchedPtr * address, struct cudaExtent extent))                   \
    X(cudaMemAdvise, (const void *address, size_t bytes, enum cudaMemoryAdvise advice,             \
                      struct cudaMemLocation location))                                            \
    X(cudaFree, (void *address))                                                                   \
    X(cudaMallocHost, (void **address, size_t bytes))                                              \
    X(cudaHostAlloc, (void **address, size_t bytes, unsigned int flags))                           \
    X(cudaFreeHost, (void *address))                                                               \
    X(cudaHostRegister, (void *address, size_t bytes, unsigned int flags))                         \
    X(cudaHostUnregister, (void *address))                                                         \
    X(cudaHostGetDevicePointer, (void **address, void *host, unsigned int flags))                  \
    X(cudaHostGetFlags, (unsigned int *flags, void *host))                                         \
    X(cudaPointerGetAttributes, (struct cudaPointerAttributes * attributes, const void *address))  \
    X(cudaStreamCreate, (cudaStream_t * stream))                                                   \
    X(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags))                      \
    X(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned int flags, int priority))     \
    X(cudaStreamDestroy, (cudaStream_t stream))                                                    \
    X(cudaEventCreate, (cudaEvent_t * event))                                                      \
    X(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags))                         \
    X(cudaEventDestroy, (cudaEvent_t event))                                                       \
    X(cudaEventQuery, (cudaEvent_t event))                                                         \
    X(cudaEventSynchronize, (cudaEvent_t event))                                                   \
    X(cudaEventElapsedTime, (float *ms, cudaEvent_t from, cudaEvent_t to))                         \
    X(cudaGetKernel, (cudaKernel_t * kernel, const void *function))                                \
    X(cudaGetFuncBySymbol, (cudaFunction_t * function, const void *symbol))                        \
    X(cudaFuncGetAttributes, (struct cudaFuncAttributes * attributes, const void *function))       \
    X(cudaFuncSetAttribute, (const void *function, enum cudaFuncAttribute which, int value))       \
    X(cudaFuncSetCacheConfig, (const void *function, enum cudaFuncCache config))                   \
    X(cudaFuncGetName, (const char **name, const void *function))                                  \
    X(cudaFuncGetParamInfo, (const void *function, size_t index, size_t *offset, size_t *bytes))   \
    X(cudaOccupancyMaxActiveBlocksPerMultiprocessor,                                               \
      (int *count, const void *function, int threads, size_t shared_bytes))                        \
    X(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,                                      \
      (int *count, const void *function, int threads, size_t shared_bytes, unsigned int flags))    \
    X(cudaOccupancyAvailableDynamicSMemPerBlock,                                                   \
      (size_t * bytes, const void *function, int blocks, int threads))                             \
    X(cudaGetSymbolAddress, (void **address, const void *symbol))                                  \
    X(cudaGetSymbolSize, (size_t * bytes, const void *symbol))                                     \
    X(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags)) \
    X(cudaGraphInstantiateWithFlags,                                                               \
      (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags))                       \
    X(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode))                    \
    X(cudaGraphCreate, (cudaGraph_t * graph, unsigned int flags))                                  \
    X(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t * nodes, size_t * count))             \
    X(cudaGraphAddKernelNode,                                                                      \
      (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,     \
       const struct cudaKernelNodeParams *params))                                                 \
    X(cudaGraphAddMemcpyNode,                                                                      \
      (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,     \
       const struct cudaMemcpy3DParms *params))                                                    \
    X(cudaGraphAddHostNode,                                                                        \
      (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,     \
       const struct cudaHostNodeParams *params))                                                   \
    X(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph))                                    \
    X(cudaGraphAddMemcpyNode1D,                                                                    \
      (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,     \
       void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind))                        \
    X(cudaGraphAddMemsetNode,                                                                      \
      (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,     \
       const struct cudaMemsetParams *params))                                                     \
    X(cudaGraphAddChildGraphNode,                                                                  \
      (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,     \
       cudaGraph_t child))                                                                         \
    X(cudaGraphExecKernelNodeSetParams,                                                            \
      (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaKernelNodeParams *params))     \
    X(cudaGraphExecUpdate,                                                                         \
      (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo * info))             \
    X(cudaGraphDestroy, (cudaGraph_t graph))                                                       \
    X(cudaGraphExecDestroy, (cudaGraphExec_t exec))                                                \
    X(cudaProfilerStart, (void))                                                                   \
    X(cudaProfilerStop, (void))

/* X(name, suffix of the variant for the per-thread default stream, parameters, arguments) */
#define CUDART_STREAM_CALLS(X)                                                                    \
    X(cudaMemcpy, _ptds, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind),    \
      (to, from, bytes, kind))                                                                    \
    X(cudaMemcpyAsync, _ptsz,                                                                     \
      (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),  \
      (to, from, bytes, kind, stream))                                                            \
    X(cudaMemcpy2D, _ptds,                                                                        \
      (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,              \
       size_t height, enum cudaMemcpyKind kind),                                                  \
      (to, to_pitch, from, from_pitch, width, height, kind))                                      \
    X(cudaMemcpy2DAsync, _ptsz,                                                                   \
      (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,              \
       size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),                             \
      (to, to_pitch, from, from_pitch, width, height, kind, stream))                              \
    X(cudaMemcpy3D, _ptds, (const struct cudaMemcpy3DParms *copy), (copy))                        \
    X(cudaMemcpy3DAsync, _ptsz, (const struct cudaMemcpy3DParms *copy, cudaStream_t stream),      \
      (copy, stream))                                                                             \
    X(cudaMemset, _ptds, (void *to, int value, size_t bytes), (to, value, bytes))                 \
    X(cudaMemsetAsync, _ptsz, (void *to, int value, size_t bytes, cudaStream_t stream),           \
      (to, value, bytes, stream))                                                                 \
    X(cudaMemset2D, _ptds, (void *to, size_t pitch, int value, size_t width, size_t height),      \
      (to, pitch, value, width, height))                                                          \
    X(cudaMemset2DAsync, _ptsz,                                                                   \
      (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),      \
      (to, pitch, value, width, height, stream))                                                  \
    X(cudaMemset3D, _ptds, (struct cudaPitchedPtr to, int value, struct cudaExtent extent),       \
      (to, value, extent))                                                                        \
    X(cudaMemset3DAsync, _ptsz,                                                                   \
      (struct cudaPitchedPtr to, int value, struct cudaExtent extent, cudaStream_t stream),       \
      (to, value, extent, stream))                                                                \
    X(cudaMemPrefetchAsync, _ptsz,                                                                \
      (const void *address, size_t bytes, struct cudaMemLocation location, unsigned int flags,    \
       cudaStream_t stream),                                                                      \
      (address, bytes, location, flags, stream))                                                  \
    X(cudaStreamAttachMemAsync, _ptsz,                                                            \
      (cudaStream_t stream, void *address, size_t bytes, unsigned int flags),                     \
      (stream, address, bytes, flags))                                                            \
    X(cudaMemcpyToSymbol, _ptds,                                                                  \
      (const void *symbol, const void *from, size_t bytes, size_t offset,                         \
       enum cudaMemcpyKind kind),                                                                 \
      (symbol, from, bytes, offset, kind))                                                        \
    X(cudaMemcpyFromSymbol, _ptds,                                                                \
      (void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind),      \
      (to, symbol, bytes, offset, kind))                                                          \
    X(cudaMemcpyToSymbolAsync, _ptsz,                                                             \
      (const void *symbol, const void *from, size_t bytes, size_t offset,                         \
       enum cudaMemcpyKind kind, cudaStream_t stream),                                            \
      (symbol, from, bytes, offset, kind, stream))                                                \
    X(cudaMemcpyFromSymbolAsync, _ptsz,                                                           \
      (void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind,       \
       cudaStream_t stream),                                                                      \
      (to, symbol, bytes, offset, kind, stream))                                                  \
    X(cudaLaunchKernel, _ptsz,                                                                    \
      (const void *function, dim3 grid, dim3 block, void **args, size_t shared_bytes,             \
       cudaStream_t stream),                                                                      \
      (function, grid, block, args, shared_bytes, stream))                                        \
    X(cudaLaunchCooperativeKernel, _ptsz,                                                         \
      (const void *function, dim3 grid, dim3 block, void **args, size_t shared_bytes,             \
       cudaStream_t stream),                                                                      \
      (function, grid, block, args, shared_bytes, stream))                                        \
    X(cudaLaunchKernelExC, _ptsz,                                                                 \
      (const cudaLaunchConfig_t *config, const void *function, void **args),                      \
      (config, function, args))                                                                   \
    X(cudaMallocAsync, _ptsz, (void **address, size_t bytes, cudaStream_t stream),                \
      (address, bytes, stream))                                                                   \
    X(cudaMallocFromPoolAsync, _ptsz,                                                             \
      (void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),                    \
      (address, bytes, pool, stream))                                                             \
    X(cudaFreeAsync, _ptsz, (void *address, cudaStream_t stream), (address, stream))              \
    X(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int *priority), (stream, priority))     \
    X(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned int *flags), (stream, flags))     \
    X(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long *id), (stream, id))        \
    X(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), (stream))                              \
    X(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int *device), (stream, device))           \
    X(cudaStreamQuery, _ptsz, (cudaStream_t stream), (stream))                                    \
    X(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),   \
      (stream, event, flags))                                                                     \
    X(cudaStreamAddCallback, _ptsz,                                                               \
      (cudaStream_t stream, cudaStreamCallback_t function, void *argument, unsigned int flags),   \
      (stream, function, argument, flags))                                                        \
    X(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureStatus * status), \
      (stream, status))                                                                           \
    X(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureMode mode),      \
      (stream, mode))                                                                             \
    X(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t * graph), (stream, graph))   \
    X(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))        \
    X(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))        \
    X(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void *argument),    \
      (stream, function, argument))                                                               \
    X(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), (event, stream))          \
    X(cudaEventRecordWithFlags, _ptsz,                                                            \
      (cudaEvent_t event, cudaStream_t stream, unsigned int flags), (event, stream, flags))

/* X(name): calls that exist and are refused with NotSupported; stderr says which. Without them a
   program that only mentions one could not start. */
#define CUDART_REFUSED_CALLS(X)             \
    X(cudaMallocArray)                      \
    X(cudaMalloc3DArray)                    \
    X(cudaFreeArray)                        \
    X(cudaArrayGetInfo)                     \
    X(cudaMemcpyToArray)                    \
    X(cudaMemcpy2DToArray)                  \
    X(cudaMemcpy2DFromArray)                \
    X(cudaMemcpy2DArrayToArray)             \
    X(cudaCreateTextureObject)              \
    X(cudaDestroyTextureObject)             \
    X(cudaCreateSurfaceObject)              \
    X(cudaDestroySurfaceObject)             \
    X(cudaMemRangeGetAttribute)             \
    X(cudaMemcpyPeer)                       \
    X(cudaMemcpyPeerAsync)                  \
    X(cudaDeviceEnablePeerAccess)           \
    X(cudaDeviceDisablePeerAccess)          \
    X(cudaIpcGetMemHandle)                  \
    X(cudaIpcOpenMemHandle)                 \
    X(cudaIpcCloseMemHandle)                \
    X(cudaIpcGetEventHandle)                \
    X(cudaIpcOpenEventHandle)               \
    X(cudaMemPoolSetAccess)                 \
    X(cudaGraphAddDependencies)             \
    X(cudaStreamGetCaptureInfo)             \
    X(cudaStreamSetAttribute)               \
    X(cudaStreamGetAttribute)               \
    X(cudaFuncSetSharedMemConfig)           \
    X(cudaDeviceSetSharedMemConfig)         \
    X(cudaDeviceGetSharedMemConfig)         \
    X(cudaOccupancyMaxActiveClusters)       \
    X(cudaOccupancyMaxPotentialClusterSize) \
    X(cudaImportExternalMemory)             \
    X(cudaImportExternalSemaphore)          \
    X(cudaLibraryLoadData)                  \
    X(cudaLibraryGetKernel)                 \
    X(cudaGetDriverEntryPointByVersion)     \
    X(cudaChooseDevice)                     \
    X(cudaDeviceGetByPCIBusId)

/* X(name, parameters): calls that cannot fail. */
#define CUDART_TEXT_CALLS(X)                 \
    X(cudaGetErrorName, (cudaError_t error)) \
    X(cudaGetErrorString, (cudaError_t error))

#endif
