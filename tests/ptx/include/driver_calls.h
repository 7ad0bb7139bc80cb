/*
 * The calls of CUDA's driver that the test driver has and that libcudart and libcublas of these
 * tests use, as lists. Everything else is generated from them: declarations, the table of entry
 * points, and the variants of calls for the per-thread default stream. Where NVIDIA's headers are
 * installed, headers_check.c compares the two.
 *
 * The names are NVIDIA's, since this is their interface.
 */
#ifndef CAPU_TESTS_PTX_DRIVER_CALLS_H
#define CAPU_TESTS_PTX_DRIVER_CALLS_H

/* X(name, symbol suffix, version of CUDA, parameters): calls without a stream. */
#define DRIVER_PLAIN_CALLS(X)                                                                      \
    X(cuInit, , 2000, (unsigned flags))                                                            \
    X(cuDriverGetVersion, , 2020, (int *version))                                                  \
    X(cuGetErrorName, , 6000, (CUresult error, const char **text))                                 \
    X(cuGetErrorString, , 6000, (CUresult error, const char **text))                               \
    X(cuDeviceGet, , 2000, (CUdevice * device, int ordinal))                                       \
    X(cuDeviceGetCount, , 2000, (int *count))                                                      \
    X(cuDeviceGetName, , 2000, (char *name, int bytes, CUdevice device))                           \
    X(cuDeviceGetUuid, , 9020, (CUuuid * uuid, CUdevice device))                                   \
    X(cuDeviceTotalMem, _v2, 3020, (size_t * bytes, CUdevice device))                              \
    X(cuDeviceGetAttribute, , 2000, (int *value, CUdevice_attribute attribute, CUdevice device))   \
    X(cuDeviceComputeCapability, , 2000, (int *major, int *minor, CUdevice device))                \
    X(cuDeviceCanAccessPeer, , 4000, (int *can, CUdevice device, CUdevice peer))                   \
    X(cuDeviceGetPCIBusId, , 4010, (char *text, int bytes, CUdevice device))                       \
    X(cuDeviceGetDefaultMemPool, , 11020, (CUmemoryPool * pool, CUdevice device))                  \
    X(cuDeviceGetMemPool, , 11020, (CUmemoryPool * pool, CUdevice device))                         \
    X(cuDeviceSetMemPool, , 11020, (CUdevice device, CUmemoryPool pool))                           \
    X(cuDevicePrimaryCtxRetain, , 7000, (CUcontext * context, CUdevice device))                    \
    X(cuDevicePrimaryCtxRelease, , 7000, (CUdevice device))                                        \
    X(cuDevicePrimaryCtxReset, , 7000, (CUdevice device))                                          \
    X(cuDevicePrimaryCtxSetFlags, _v2, 11000, (CUdevice device, unsigned flags))                   \
    X(cuDevicePrimaryCtxGetState, , 7000, (CUdevice device, unsigned *flags, int *is_active))      \
    X(cuCtxCreate, _v2, 3020, (CUcontext * context, unsigned flags, CUdevice device))              \
    X(cuCtxDestroy, _v2, 4000, (CUcontext context))                                                \
    X(cuCtxPushCurrent, _v2, 4000, (CUcontext context))                                            \
    X(cuCtxPopCurrent, _v2, 4000, (CUcontext * context))                                           \
    X(cuCtxSetCurrent, , 4000, (CUcontext context))                                                \
    X(cuCtxGetCurrent, , 4000, (CUcontext * context))                                              \
    X(cuCtxGetDevice, _v2, 13000, (CUdevice * device, CUcontext context))                          \
    X(cuCtxGetFlags, , 7000, (unsigned *flags))                                                    \
    X(cuCtxGetApiVersion, , 3020, (CUcontext context, unsigned *version))                          \
    X(cuCtxSynchronize, _v2, 13000, (CUcontext context))                                           \
    X(cuCtxSetLimit, , 3010, (CUlimit limit, size_t value))                                        \
    X(cuCtxGetLimit, , 3010, (size_t * value, CUlimit limit))                                      \
    X(cuCtxGetCacheConfig, , 3020, (CUfunc_cache * config))                                        \
    X(cuCtxSetCacheConfig, , 3020, (CUfunc_cache config))                                          \
    X(cuCtxGetStreamPriorityRange, , 5050, (int *least, int *greatest))                            \
    X(cuMemGetInfo, _v2, 3020, (size_t * free_bytes, size_t * total_bytes))                        \
    X(cuMemAlloc, _v2, 3020, (CUdeviceptr * address, size_t bytes))                                \
    X(cuMemAllocPitch, _v2, 3020,                                                                  \
      (CUdeviceptr * address, size_t * pitch, size_t width, size_t height, unsigned element))      \
    X(cuMemAllocManaged, , 6000, (CUdeviceptr * address, size_t bytes, unsigned flags))            \
    X(cuMemFree, _v2, 3020, (CUdeviceptr address))                                                 \
    X(cuMemGetAddressRange, _v2, 3020, (CUdeviceptr * base, size_t * bytes, CUdeviceptr address))  \
    X(cuMemAllocHost, _v2, 3020, (void **address, size_t bytes))                                   \
    X(cuMemHostAlloc, , 2020, (void **address, size_t bytes, unsigned flags))                      \
    X(cuMemFreeHost, , 2000, (void *address))                                                      \
    X(cuMemHostRegister, _v2, 6050, (void *address, size_t bytes, unsigned flags))                 \
    X(cuMemHostUnregister, , 4000, (void *address))                                                \
    X(cuMemHostGetDevicePointer, _v2, 3020, (CUdeviceptr * address, void *host, unsigned flags))   \
    X(cuMemHostGetFlags, , 2030, (unsigned *flags, void *host))                                    \
    X(cuPointerGetAttribute, , 4000,                                                               \
      (void *value, CUpointer_attribute attribute, CUdeviceptr address))                           \
    X(cuPointerGetAttributes, , 7000,                                                              \
      (unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr address))       \
    X(cuMemPoolSetAttribute, , 11020,                                                              \
      (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))                             \
    X(cuMemPoolGetAttribute, , 11020,                                                              \
      (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))                             \
    X(cuMemPoolTrimTo, , 11020, (CUmemoryPool pool, size_t bytes))                                 \
    X(cuMemPoolCreate, , 11020, (CUmemoryPool * pool, const CUmemPoolProps *properties))           \
    X(cuMemPoolDestroy, , 11020, (CUmemoryPool pool))                                              \
    X(cuMemAdvise, _v2, 12020,                                                                     \
      (CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location))            \
    X(cuStreamCreate, , 2000, (CUstream * stream, unsigned flags))                                 \
    X(cuStreamCreateWithPriority, , 5050, (CUstream * stream, unsigned flags, int priority))       \
    X(cuStreamDestroy, _v2, 4000, (CUstream stream))                                               \
    X(cuGraphInstantiateWithFlags, , 11040,                                                        \
      (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                               \
    X(cuGraphClone, , 10000, (CUgraph * clone, CUgraph graph))                                     \
    X(cuGraphDestroy, , 10000, (CUgraph graph))                                                    \
    X(cuGraphExecDestroy, , 10000, (CUgraphExec exec))                                             \
    X(cuGraphCreate, , 10000, (CUgraph * graph, unsigned flags))                                   \
    X(cuGraphGetNodes, , 10000, (CUgraph graph, CUgraphNode * nodes, size_t * count))              \
    X(cuGraphNodeGetType, , 10000, (CUgraphNode node, CUgraphNodeType * type))                     \
    X(cuGraphAddKernelNode, _v2, 12000,                                                            \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,                 \
       const CUDA_KERNEL_NODE_PARAMS *params))                                                     \
    X(cuGraphKernelNodeGetParams, _v2, 12000,                                                      \
      (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS * params))                                        \
    X(cuGraphKernelNodeSetParams, _v2, 12000,                                                      \
      (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params))                                   \
    X(cuGraphKernelNodeGetAttribute, , 11000,                                                      \
      (CUgraphNode node, unsigned id, CUlaunchAttributeValue *value))                              \
    X(cuGraphAddMemcpyNode, , 10000,                                                               \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,                 \
       const CUDA_MEMCPY3D *params, CUcontext context))                                            \
    X(cuGraphMemcpyNodeGetParams, , 10000, (CUgraphNode node, CUDA_MEMCPY3D * params))             \
    X(cuGraphMemcpyNodeSetParams, , 10000, (CUgraphNode node, const CUDA_MEMCPY3D *params))        \
    X(cuGraphAddMemsetNode, , 10000,                                                               \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,                 \
       const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context))                                  \
    X(cuGraphMemsetNodeGetParams, , 10000, (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS * params))   \
    X(cuGraphMemsetNodeSetParams, , 10000,                                                         \
      (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params))                                   \
    X(cuGraphAddHostNode, , 10000,                                                                 \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,                 \
       const CUDA_HOST_NODE_PARAMS *params))                                                       \
    X(cuGraphAddChildGraphNode, , 10000,                                                           \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count, CUgraph child)) \
    X(cuGraphExecKernelNodeSetParams, _v2, 12000,                                                  \
      (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params))                 \
    X(cuGraphExecMemcpyNodeSetParams, , 10020,                                                     \
      (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params, CUcontext context))        \
    X(cuGraphExecMemsetNodeSetParams, , 10020,                                                     \
      (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params,                  \
       CUcontext context))                                                                         \
    X(cuGraphExecUpdate, _v2, 12000,                                                               \
      (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo * info))                       \
    X(cuThreadExchangeStreamCaptureMode, , 10010, (CUstreamCaptureMode * mode))                    \
    X(cuEventCreate, , 2000, (CUevent * event, unsigned flags))                                    \
    X(cuEventDestroy, _v2, 4000, (CUevent event))                                                  \
    X(cuEventQuery, , 2000, (CUevent event))                                                       \
    X(cuEventSynchronize, , 2000, (CUevent event))                                                 \
    X(cuEventElapsedTime, _v2, 12080, (float *ms, CUevent from, CUevent to))

/* The same: device code. */
#define DRIVER_CODE_CALLS(X)                                                                       \
    X(cuModuleLoad, , 2000, (CUmodule * module, const char *path))                                 \
    X(cuModuleLoadData, , 2000, (CUmodule * module, const void *image))                            \
    X(cuModuleLoadDataEx, , 2010,                                                                  \
      (CUmodule * module, const void *image, unsigned count, CUjit_option *options,                \
       void **values))                                                                             \
    X(cuModuleLoadFatBinary, , 2000, (CUmodule * module, const void *image))                       \
    X(cuModuleUnload, , 2000, (CUmodule module))                                                   \
    X(cuModuleGetFunction, , 2000, (CUfunction * function, CUmodule module, const char *name))     \
    X(cuModuleGetGlobal, _v2, 3020,                                                                \
      (CUdeviceptr * address, size_t * bytes, CUmodule module, const char *name))                  \
    X(cuModuleGetLoadingMode, , 11070, (CUmoduleLoadingMode * mode))                               \
    X(cuModuleGetFunctionCount, , 12040, (unsigned *count, CUmodule module))                       \
    X(cuModuleEnumerateFunctions, , 12040,                                                         \
      (CUfunction * functions, unsigned count, CUmodule module))                                   \
    X(cuLibraryLoadData, , 12000,                                                                  \
      (CUlibrary * library, const void *image, CUjit_option *options, void **values,               \
       unsigned count, CUlibraryOption *library_options, void **library_values,                    \
       unsigned library_count))                                                                    \
    X(cuLibraryLoadFromFile, , 12000,                                                              \
      (CUlibrary * library, const char *path, CUjit_option *options, void **values,                \
       unsigned count, CUlibraryOption *library_options, void **library_values,                    \
       unsigned library_count))                                                                    \
    X(cuLibraryUnload, , 12000, (CUlibrary library))                                               \
    X(cuLibraryGetKernel, , 12000, (CUkernel * kernel, CUlibrary library, const char *name))       \
    X(cuLibraryGetModule, , 12000, (CUmodule * module, CUlibrary library))                         \
    X(cuLibraryGetGlobal, , 12000,                                                                 \
      (CUdeviceptr * address, size_t * bytes, CUlibrary library, const char *name))                \
    X(cuLibraryGetKernelCount, , 12040, (unsigned *count, CUlibrary library))                      \
    X(cuLibraryEnumerateKernels, , 12040, (CUkernel * kernels, unsigned count, CUlibrary library)) \
    X(cuKernelGetFunction, , 12000, (CUfunction * function, CUkernel kernel))                      \
    X(cuKernelGetLibrary, , 12050, (CUlibrary * library, CUkernel kernel))                         \
    X(cuKernelGetName, , 12030, (const char **name, CUkernel kernel))                              \
    X(cuKernelGetAttribute, , 12000,                                                               \
      (int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device))              \
    X(cuKernelSetAttribute, , 12000,                                                               \
      (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device))               \
    X(cuKernelSetCacheConfig, , 12000, (CUkernel kernel, CUfunc_cache config, CUdevice device))    \
    X(cuKernelGetParamInfo, , 12040,                                                               \
      (CUkernel kernel, size_t index, size_t * offset, size_t * bytes))                            \
    X(cuFuncGetAttribute, , 2020,                                                                  \
      (int *value, CUfunction_attribute attribute, CUfunction function))                           \
    X(cuFuncSetAttribute, , 9000,                                                                  \
      (CUfunction function, CUfunction_attribute attribute, int value))                            \
    X(cuFuncSetCacheConfig, , 3000, (CUfunction function, CUfunc_cache config))                    \
    X(cuFuncGetName, , 12030, (const char **name, CUfunction function))                            \
    X(cuFuncGetModule, , 11000, (CUmodule * module, CUfunction function))                          \
    X(cuFuncGetParamInfo, , 12040,                                                                 \
      (CUfunction function, size_t index, size_t * offset, size_t * bytes))                        \
    X(cuFuncIsLoaded, , 12040, (CUfunctionLoadingState * state, CUfunction function))              \
    X(cuFuncLoad, , 12040, (CUfunction function))                                                  \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, , 6050,                                         \
      (int *count, CUfunction function, int threads, size_t shared_bytes))                         \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, , 7000,                                \
      (int *count, CUfunction function, int threads, size_t shared_bytes, unsigned flags))         \
    X(cuOccupancyMaxPotentialBlockSize, , 6050,                                                    \
      (int *blocks, int *threads, CUfunction function, CUoccupancyB2DSize shared_of,               \
       size_t shared_bytes, int limit))                                                            \
    X(cuOccupancyAvailableDynamicSMemPerBlock, , 10020,                                            \
      (size_t * bytes, CUfunction function, int blocks, int threads))

/* The same: other versions of calls above. */
#define DRIVER_OTHER_VERSIONS(X)                                                                  \
    X(cuGraphInstantiate, WithFlags, 12000,                                                       \
      (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                              \
    X(cuDeviceGetUuid, _v2, 11040, (CUuuid * uuid, CUdevice device))                              \
    X(cuDevicePrimaryCtxRelease, _v2, 11000, (CUdevice device))                                   \
    X(cuDevicePrimaryCtxReset, _v2, 11000, (CUdevice device))                                     \
    X(cuCtxGetDevice, , 2000, (CUdevice * device))                                                \
    X(cuCtxSynchronize, , 2000, (void))                                                           \
    X(cuEventElapsedTime, , 2000, (float *ms, CUevent from, CUevent to))                          \
    X(cuGetProcAddress, , 11030, (const char *name, void **entry, int version, cuuint64_t flags)) \
    X(cuGetProcAddress, _v2, 12000,                                                               \
      (const char *name, void **entry, int version, cuuint64_t flags,                             \
       CUdriverProcAddressQueryResult *result))

/*
 * X(name, symbol suffix, version, version and suffix of the variant for the per-thread default
 * stream, parameters, arguments with which the variant calls the function itself): calls that use a
 * stream. PER_THREAD(stream) is the stream that the variant means.
 */
#define DRIVER_STREAM_CALLS(X)                                                                     \
    X(cuMemcpy, , 4000, 7000, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),             \
      (to, from, bytes))                                                                           \
    X(cuMemcpyHtoD, _v2, 3020, 7000, _ptds, (CUdeviceptr to, const void *from, size_t bytes),      \
      (to, from, bytes))                                                                           \
    X(cuMemcpyDtoH, _v2, 3020, 7000, _ptds, (void *to, CUdeviceptr from, size_t bytes),            \
      (to, from, bytes))                                                                           \
    X(cuMemcpyDtoD, _v2, 3020, 7000, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),      \
      (to, from, bytes))                                                                           \
    X(cuMemcpy2D, _v2, 3020, 7000, _ptds, (const CUDA_MEMCPY2D *copy), (copy))                     \
    X(cuMemcpy2DUnaligned, _v2, 3020, 7000, _ptds, (const CUDA_MEMCPY2D *copy), (copy))            \
    X(cuMemcpy3D, _v2, 3020, 7000, _ptds, (const CUDA_MEMCPY3D *copy), (copy))                     \
    X(cuMemcpyAsync, , 4000, 7000, _ptsz,                                                          \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),                           \
      (to, from, bytes, PER_THREAD(stream)))                                                       \
    X(cuMemcpyHtoDAsync, _v2, 3020, 7000, _ptsz,                                                   \
      (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),                           \
      (to, from, bytes, PER_THREAD(stream)))                                                       \
    X(cuMemcpyDtoHAsync, _v2, 3020, 7000, _ptsz,                                                   \
      (void *to, CUdeviceptr from, size_t bytes, CUstream stream),                                 \
      (to, from, bytes, PER_THREAD(stream)))                                                       \
    X(cuMemcpyDtoDAsync, _v2, 3020, 7000, _ptsz,                                                   \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),                           \
      (to, from, bytes, PER_THREAD(stream)))                                                       \
    X(cuMemcpy2DAsync, _v2, 3020, 7000, _ptsz, (const CUDA_MEMCPY2D *copy, CUstream stream),       \
      (copy, PER_THREAD(stream)))                                                                  \
    X(cuMemcpy3DAsync, _v2, 3020, 7000, _ptsz, (const CUDA_MEMCPY3D *copy, CUstream stream),       \
      (copy, PER_THREAD(stream)))                                                                  \
    X(cuMemsetD8, _v2, 3020, 7000, _ptds, (CUdeviceptr to, unsigned char value, size_t count),     \
      (to, value, count))                                                                          \
    X(cuMemsetD16, _v2, 3020, 7000, _ptds, (CUdeviceptr to, unsigned short value, size_t count),   \
      (to, value, count))                                                                          \
    X(cuMemsetD32, _v2, 3020, 7000, _ptds, (CUdeviceptr to, unsigned value, size_t count),         \
      (to, value, count))                                                                          \
    X(cuMemsetD2D8, _v2, 3020, 7000, _ptds,                                                        \
      (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height),            \
      (to, pitch, value, width, height))                                                           \
    X(cuMemsetD2D16, _v2, 3020, 7000, _ptds,                                                       \
      (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height),           \
      (to, pitch, value, width, height))                                                           \
    X(cuMemsetD2D32, _v2, 3020, 7000, _ptds,                                                       \
      (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height),                 \
      (to, pitch, value, width, height))                                                           \
    X(cuMemsetD8Async, , 3020, 7000, _ptsz,                                                        \
      (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),                        \
      (to, value, count, PER_THREAD(stream)))                                                      \
    X(cuMemsetD16Async, , 3020, 7000, _ptsz,                                                       \
      (CUdeviceptr to, unsigned short value, size_t count, CUstream stream),                       \
      (to, value, count, PER_THREAD(stream)))                                                      \
    X(cuMemsetD32Async, , 3020, 7000, _ptsz,                                                       \
      (CUdeviceptr to, unsigned value, size_t count, CUstream stream),                             \
      (to, value, count, PER_THREAD(stream)))                                                      \
    X(cuMemsetD2D8Async, , 3020, 7000, _ptsz,                                                      \
      (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,             \
       CUstream stream),                                                                           \
      (to, pitch, value, width, height, PER_THREAD(stream)))                                       \
    X(cuMemsetD2D16Async, , 3020, 7000, _ptsz,                                                     \
      (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,            \
       CUstream stream),                                                                           \
      (to, pitch, value, width, height, PER_THREAD(stream)))                                       \
    X(cuMemsetD2D32Async, , 3020, 7000, _ptsz,                                                     \
      (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,                  \
       CUstream stream),                                                                           \
      (to, pitch, value, width, height, PER_THREAD(stream)))                                       \
    X(cuMemAllocAsync, , 11020, 11020, _ptsz,                                                      \
      (CUdeviceptr * address, size_t bytes, CUstream stream),                                      \
      (address, bytes, PER_THREAD(stream)))                                                        \
    X(cuMemAllocFromPoolAsync, , 11020, 11020, _ptsz,                                              \
      (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),                   \
      (address, bytes, pool, PER_THREAD(stream)))                                                  \
    X(cuMemFreeAsync, , 11020, 11020, _ptsz, (CUdeviceptr address, CUstream stream),               \
      (address, PER_THREAD(stream)))                                                               \
    X(cuStreamGetPriority, , 5050, 7000, _ptsz, (CUstream stream, int *priority),                  \
      (PER_THREAD(stream), priority))                                                              \
    X(cuStreamGetFlags, , 5050, 7000, _ptsz, (CUstream stream, unsigned *flags),                   \
      (PER_THREAD(stream), flags))                                                                 \
    X(cuStreamGetId, , 12000, 12000, _ptsz, (CUstream stream, unsigned long long *id),             \
      (PER_THREAD(stream), id))                                                                    \
    X(cuStreamGetCtx, , 9020, 9020, _ptsz, (CUstream stream, CUcontext * context),                 \
      (PER_THREAD(stream), context))                                                               \
    X(cuStreamWaitEvent, , 3020, 7000, _ptsz, (CUstream stream, CUevent event, unsigned flags),    \
      (PER_THREAD(stream), event, flags))                                                          \
    X(cuStreamAddCallback, , 5000, 7000, _ptsz,                                                    \
      (CUstream stream, CUstreamCallback function, void *argument, unsigned flags),                \
      (PER_THREAD(stream), function, argument, flags))                                             \
    X(cuStreamQuery, , 2000, 7000, _ptsz, (CUstream stream), (PER_THREAD(stream)))                 \
    X(cuStreamSynchronize, , 2000, 7000, _ptsz, (CUstream stream), (PER_THREAD(stream)))           \
    X(cuStreamIsCapturing, , 10000, 10000, _ptsz,                                                  \
      (CUstream stream, CUstreamCaptureStatus * status), (PER_THREAD(stream), status))             \
    X(cuStreamBeginCapture, _v2, 10010, 10010, _ptsz, (CUstream stream, CUstreamCaptureMode mode), \
      (PER_THREAD(stream), mode))                                                                  \
    X(cuStreamEndCapture, , 10000, 10000, _ptsz, (CUstream stream, CUgraph * graph),               \
      (PER_THREAD(stream), graph))                                                                 \
    X(cuStreamGetCaptureInfo, _v2, 11030, 11030, _ptsz,                                            \
      (CUstream stream, CUstreamCaptureStatus * status, cuuint64_t * id, CUgraph * graph,          \
       const CUgraphNode **before, size_t *count),                                                 \
      (PER_THREAD(stream), status, id, graph, before, count))                                      \
    X(cuGraphUpload, , 11010, 11010, _ptsz, (CUgraphExec exec, CUstream stream),                   \
      (exec, PER_THREAD(stream)))                                                                  \
    X(cuGraphLaunch, , 10000, 10000, _ptsz, (CUgraphExec exec, CUstream stream),                   \
      (exec, PER_THREAD(stream)))                                                                  \
    X(cuEventRecord, , 2000, 7000, _ptsz, (CUevent event, CUstream stream),                        \
      (event, PER_THREAD(stream)))                                                                 \
    X(cuEventRecordWithFlags, , 11010, 11010, _ptsz,                                               \
      (CUevent event, CUstream stream, unsigned flags), (event, PER_THREAD(stream), flags))        \
    X(cuMemPrefetchAsync, _v2, 12020, 12020, _ptsz,                                                \
      (CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,                  \
       CUstream stream),                                                                           \
      (address, bytes, location, flags, PER_THREAD(stream)))                                       \
    X(cuMemPrefetchBatchAsync, , 13000, 13000, _ptsz,                                              \
      (CUdeviceptr * addresses, size_t * bytes, size_t count, CUmemLocation * locations,           \
       size_t * first, size_t location_count, unsigned long long flags, CUstream stream),          \
      (addresses, bytes, count, locations, first, location_count, flags, PER_THREAD(stream)))      \
    X(cuMemDiscardBatchAsync, , 13000, 13000, _ptsz,                                               \
      (CUdeviceptr * addresses, size_t * bytes, size_t count, unsigned long long flags,            \
       CUstream stream),                                                                           \
      (addresses, bytes, count, flags, PER_THREAD(stream)))                                        \
    X(cuMemDiscardAndPrefetchBatchAsync, , 13000, 13000, _ptsz,                                    \
      (CUdeviceptr * addresses, size_t * bytes, size_t count, CUmemLocation * locations,           \
       size_t * first, size_t location_count, unsigned long long flags, CUstream stream),          \
      (addresses, bytes, count, locations, first, location_count, flags, PER_THREAD(stream)))      \
    X(cuStreamAttachMemAsync, , 6000, 7000, _ptsz,                                                 \
      (CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags),                        \
      (PER_THREAD(stream), address, bytes, flags))                                                 \
    X(cuStreamWaitValue32, , 8000, 8000, _ptsz,                                                    \
      (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),                    \
      (PER_THREAD(stream), address, value, flags))                                                 \
    X(cuLaunchHostFunc, , 10000, 10000, _ptsz,                                                     \
      (CUstream stream, CUhostFn function, void *argument),                                        \
      (PER_THREAD(stream), function, argument))

/* The same: launches. */
#define DRIVER_LAUNCH_CALLS(X)                                                                   \
    X(cuLaunchKernel, , 4000, 7000, _ptsz,                                                       \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,               \
       void **parameters, void **extra),                                                         \
      (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,                \
       PER_THREAD(stream), parameters, extra))                                                   \
    X(cuLaunchCooperativeKernel, , 9000, 9000, _ptsz,                                            \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,               \
       void **parameters),                                                                       \
      (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,                \
       PER_THREAD(stream), parameters))                                                          \
    X(cuLaunchKernelEx, , 11060, 11060, _ptsz,                                                   \
      (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra),      \
      (per_thread_config(config, &(CUlaunchConfig){0}), function, parameters, extra))

/* X(name, symbol suffix, version): calls that exist and are refused with NOT_SUPPORTED; stderr says
   which. */
#define DRIVER_REFUSED_CALLS(X)                \
    X(cuGraphAddMemAllocNode, , 11040)         \
    X(cuGraphConditionalHandleCreate, , 12030) \
    X(cuIpcGetEventHandle, , 4010)             \
    X(cuIpcOpenEventHandle, , 4010)            \
    X(cuIpcGetMemHandle, , 4010)               \
    X(cuIpcOpenMemHandle, _v2, 11000)          \
    X(cuIpcCloseMemHandle, , 4010)             \
    X(cuCtxEnablePeerAccess, , 4000)           \
    X(cuCtxDisablePeerAccess, , 4000)          \
    X(cuMemAddressReserve, , 10020)            \
    X(cuMemAddressFree, , 10020)               \
    X(cuMemCreate, , 10020)                    \
    X(cuMemRelease, , 10020)                   \
    X(cuMemMap, , 10020)                       \
    X(cuMemUnmap, , 10020)                     \
    X(cuMemSetAccess, , 10020)                 \
    X(cuMemGetAllocationGranularity, , 10020)  \
    X(cuArrayCreate, _v2, 3020)                \
    X(cuArrayDestroy, , 2000)                  \
    X(cuTexObjectCreate, , 5000)               \
    X(cuSurfObjectCreate, , 5000)              \
    X(cuLinkCreate, _v2, 6050)                 \
    X(cuImportExternalMemory, , 10000)         \
    X(cuImportExternalSemaphore, , 10000)      \
    X(cuGreenCtxCreate, , 12040)               \
    X(cuGetExportTable, , 3000)

/* The same with variants: X(name, symbol suffix, version, version and suffix of the variant). */
#define DRIVER_REFUSED_STREAM_CALLS(X)                             \
    X(cuStreamBeginCaptureToGraph, , 12030, 12030, _ptsz)          \
    X(cuStreamGetCaptureInfo, _v3, 12030, 12030, _ptsz)            \
    X(cuStreamUpdateCaptureDependencies, _v2, 12030, 12030, _ptsz) \
    X(cuStreamWaitValue64, _v2, 11070, 11070, _ptsz)               \
    X(cuStreamWriteValue32, _v2, 11070, 11070, _ptsz)              \
    X(cuStreamWriteValue64, _v2, 11070, 11070, _ptsz)              \
    X(cuStreamBatchMemOp, _v2, 11070, 11070, _ptsz)                \
    X(cuMemcpyPeer, , 4000, 7000, _ptds)                           \
    X(cuMemcpyPeerAsync, , 4000, 7000, _ptsz)                      \
    X(cuMemcpyBatchAsync, _v2, 13000, 13000, _ptsz)                \
    X(cuMemcpy3DBatchAsync, _v2, 13000, 13000, _ptsz)

#endif
