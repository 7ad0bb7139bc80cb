/*
 * The driver's functions that the shim wraps or calls, as lists from which declarations, the table
 * of real functions and the variants for per-thread default streams are made.
 *
 * `takers` says whose calls are ours: ALL, or PROGRAM: those of the program but not of CUDA's
 * libraries, which load code for themselves, or PROGRAM_BYTES(bytes): the same for allocations, to
 * the parameter `address`; or FREES: ALL, where such memory may be freed.
 */
#ifndef CAPU_SHIM_DRIVER_CALLS_H
#define CAPU_SHIM_DRIVER_CALLS_H

#include "shim/driver/driver.h"

/* X(symbol, takers, parameters, arguments): wrapped, with one variant. */
#define DRIVER_WRAPPED(X)                                                                         \
    X(cuDevicePrimaryCtxReset, PROGRAM, (CUdevice device), (device))                              \
    X(cuDevicePrimaryCtxReset_v2, PROGRAM, (CUdevice device), (device))                           \
    X(cuCtxSynchronize_v2, ALL, (CUcontext context), (context))                                   \
    X(cuMemAlloc_v2, PROGRAM_BYTES(bytes), (CUdeviceptr * address, size_t bytes),                 \
      (address, bytes))                                                                           \
    X(cuMemAllocPitch_v2, PROGRAM_BYTES(width *height),                                           \
      (CUdeviceptr * address, size_t * pitch, size_t width, size_t height, unsigned element),     \
      (address, pitch, width, height, element))                                                   \
    X(cuMemFree_v2, FREES, (CUdeviceptr address), (address))                                      \
    X(cuMemGetInfo_v2, PROGRAM, (size_t * free_bytes, size_t * total_bytes),                      \
      (free_bytes, total_bytes))                                                                  \
    X(cuMemPoolCreate, PROGRAM, (CUmemoryPool * pool, const struct page_properties *properties),  \
      (pool, properties))                                                                         \
    X(cuMemGetDefaultMemPool, PROGRAM,                                                            \
      (CUmemoryPool * pool, struct location * location, int type), (pool, location, type))        \
    X(cuMemGetMemPool, PROGRAM, (CUmemoryPool * pool, struct location * location, int type),      \
      (pool, location, type))                                                                     \
    X(cuMemGetAddressRange_v2, ALL, (CUdeviceptr * base, size_t * bytes, CUdeviceptr address),    \
      (base, bytes, address))                                                                     \
    X(cuPointerGetAttribute, ALL, (void *value, unsigned attribute, CUdeviceptr address),         \
      (value, attribute, address))                                                                \
    X(cuPointerGetAttributes, ALL,                                                                \
      (unsigned count, unsigned *attributes, void **values, CUdeviceptr address),                 \
      (count, attributes, values, address))                                                       \
    X(cuPointerSetAttribute, ALL, (const void *value, unsigned attribute, CUdeviceptr address),   \
      (value, attribute, address))                                                                \
    X(cuModuleLoad, PROGRAM, (CUmodule * module, const char *path), (module, path))               \
    X(cuModuleLoadData, PROGRAM, (CUmodule * module, const void *image), (module, image))         \
    X(cuModuleLoadDataEx, PROGRAM,                                                                \
      (CUmodule * module, const void *image, unsigned count, int *options, void **values),        \
      (module, image, count, options, values))                                                    \
    X(cuModuleLoadFatBinary, PROGRAM, (CUmodule * module, const void *image), (module, image))    \
    X(cuModuleUnload, ALL, (CUmodule module), (module))                                           \
    X(cuModuleGetFunction, ALL, (CUfunction * function, CUmodule module, const char *name),       \
      (function, module, name))                                                                   \
    X(cuLibraryLoadData, PROGRAM,                                                                 \
      (CUlibrary * library, const void *image, int *options, void **values, unsigned count,       \
       int *library_options, void **library_values, unsigned library_count),                      \
      (library, image, options, values, count, library_options, library_values, library_count))   \
    X(cuLibraryLoadFromFile, PROGRAM,                                                             \
      (CUlibrary * library, const char *path, int *options, void **values, unsigned count,        \
       int *library_options, void **library_values, unsigned library_count),                      \
      (library, path, options, values, count, library_options, library_values, library_count))    \
    X(cuLibraryUnload, ALL, (CUlibrary library), (library))                                       \
    X(cuLibraryGetKernel, ALL, (CUkernel * kernel, CUlibrary library, const char *name),          \
      (kernel, library, name))                                                                    \
    X(cuLibraryGetModule, ALL, (CUmodule * module, CUlibrary library), (module, library))         \
    X(cuKernelGetFunction, ALL, (CUfunction * function, CUkernel kernel), (function, kernel))     \
    X(cuLibraryEnumerateKernels, ALL, (CUkernel * kernels, unsigned count, CUlibrary library),    \
      (kernels, count, library))                                                                  \
    X(cuModuleEnumerateFunctions, ALL, (CUfunction * functions, unsigned count, CUmodule module), \
      (functions, count, module))                                                                 \
    DRIVER_GRAPH_WRAPPED(X)

/* X(symbol, suffix of the variant for per-thread default streams, takers, parameters, arguments):
   wrapped. STREAM and CONFIG, defined by the user of the list, give what a variant means by a
   stream or by the configuration of a launch. */
#define DRIVER_WRAPPED_TWICE(X)                                                                   \
    X(cuMemcpy, _ptds, ALL, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes))  \
    X(cuMemcpyHtoD_v2, _ptds, ALL, (CUdeviceptr to, const void *from, size_t bytes),              \
      (to, from, bytes))                                                                          \
    X(cuMemcpyDtoH_v2, _ptds, ALL, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes)) \
    X(cuMemcpyDtoD_v2, _ptds, ALL, (CUdeviceptr to, CUdeviceptr from, size_t bytes),              \
      (to, from, bytes))                                                                          \
    X(cuMemcpy2D_v2, _ptds, ALL, (const struct copy_2d *copy), (copy))                            \
    X(cuMemcpy2DUnaligned_v2, _ptds, ALL, (const struct copy_2d *copy), (copy))                   \
    X(cuMemcpy3D_v2, _ptds, ALL, (const struct copy_3d *copy), (copy))                            \
    X(cuMemsetD8_v2, _ptds, ALL, (CUdeviceptr to, unsigned char value, size_t count),             \
      (to, value, count))                                                                         \
    X(cuMemsetD16_v2, _ptds, ALL, (CUdeviceptr to, unsigned short value, size_t count),           \
      (to, value, count))                                                                         \
    X(cuMemsetD32_v2, _ptds, ALL, (CUdeviceptr to, unsigned value, size_t count),                 \
      (to, value, count))                                                                         \
    X(cuMemsetD2D8_v2, _ptds, ALL,                                                                \
      (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height),           \
      (to, pitch, value, width, height))                                                          \
    X(cuMemsetD2D16_v2, _ptds, ALL,                                                               \
      (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height),          \
      (to, pitch, value, width, height))                                                          \
    X(cuMemsetD2D32_v2, _ptds, ALL,                                                               \
      (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height),                \
      (to, pitch, value, width, height))                                                          \
    X(cuMemAllocAsync, _ptsz, PROGRAM_BYTES(bytes),                                               \
      (CUdeviceptr * address, size_t bytes, CUstream stream), (address, bytes, STREAM(stream)))   \
    X(cuMemAllocFromPoolAsync, _ptsz, PROGRAM_BYTES(bytes),                                       \
      (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),                  \
      (address, bytes, pool, STREAM(stream)))                                                     \
    X(cuMemFreeAsync, _ptsz, FREES, (CUdeviceptr address, CUstream stream),                       \
      (address, STREAM(stream)))                                                                  \
    X(cuMemcpyAsync, _ptsz, ALL,                                                                  \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),                          \
      (to, from, bytes, STREAM(stream)))                                                          \
    X(cuMemcpyHtoDAsync_v2, _ptsz, ALL,                                                           \
      (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),                          \
      (to, from, bytes, STREAM(stream)))                                                          \
    X(cuMemcpyDtoHAsync_v2, _ptsz, ALL,                                                           \
      (void *to, CUdeviceptr from, size_t bytes, CUstream stream),                                \
      (to, from, bytes, STREAM(stream)))                                                          \
    X(cuMemcpyDtoDAsync_v2, _ptsz, ALL,                                                           \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),                          \
      (to, from, bytes, STREAM(stream)))                                                          \
    X(cuMemcpy2DAsync_v2, _ptsz, ALL, (const struct copy_2d *copy, CUstream stream),              \
      (copy, STREAM(stream)))                                                                     \
    X(cuMemcpy3DAsync_v2, _ptsz, ALL, (const struct copy_3d *copy, CUstream stream),              \
      (copy, STREAM(stream)))                                                                     \
    X(cuMemsetD8Async, _ptsz, ALL,                                                                \
      (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),                       \
      (to, value, count, STREAM(stream)))                                                         \
    X(cuMemsetD16Async, _ptsz, ALL,                                                               \
      (CUdeviceptr to, unsigned short value, size_t count, CUstream stream),                      \
      (to, value, count, STREAM(stream)))                                                         \
    X(cuMemsetD32Async, _ptsz, ALL,                                                               \
      (CUdeviceptr to, unsigned value, size_t count, CUstream stream),                            \
      (to, value, count, STREAM(stream)))                                                         \
    X(cuMemsetD2D8Async, _ptsz, ALL,                                                              \
      (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,            \
       CUstream stream),                                                                          \
      (to, pitch, value, width, height, STREAM(stream)))                                          \
    X(cuMemsetD2D16Async, _ptsz, ALL,                                                             \
      (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,           \
       CUstream stream),                                                                          \
      (to, pitch, value, width, height, STREAM(stream)))                                          \
    X(cuMemsetD2D32Async, _ptsz, ALL,                                                             \
      (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,                 \
       CUstream stream),                                                                          \
      (to, pitch, value, width, height, STREAM(stream)))                                          \
    X(cuLaunchKernel, _ptsz, ALL,                                                                 \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,  \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,                \
       void **parameters, void **extra),                                                          \
      (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, STREAM(stream), \
       parameters, extra))                                                                        \
    X(cuLaunchCooperativeKernel, _ptsz, ALL,                                                      \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,  \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,                \
       void **parameters),                                                                        \
      (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, STREAM(stream), \
       parameters))                                                                               \
    X(cuLaunchKernelEx, _ptsz, ALL,                                                               \
      (const struct launch_config *config, CUfunction function, void **parameters, void **extra), \
      (CONFIG(config), function, parameters, extra))                                              \
    X(cuLaunchHostFunc, _ptsz, ALL, (CUstream stream, host_function function, void *argument),    \
      (STREAM(stream), function, argument))                                                       \
    X(cuStreamAddCallback, _ptsz, ALL,                                                            \
      (CUstream stream, stream_callback function, void *argument, unsigned flags),                \
      (STREAM(stream), function, argument, flags))                                                \
    X(cuStreamSynchronize, _ptsz, ALL, (CUstream stream), (STREAM(stream)))                       \
    X(cuStreamQuery, _ptsz, ALL, (CUstream stream), (STREAM(stream)))                             \
    X(cuStreamWaitEvent, _ptsz, ALL, (CUstream stream, CUevent event, unsigned flags),            \
      (STREAM(stream), event, flags))                                                             \
    X(cuEventRecord, _ptsz, ALL, (CUevent event, CUstream stream), (event, STREAM(stream)))       \
    X(cuEventRecordWithFlags, _ptsz, ALL, (CUevent event, CUstream stream, unsigned flags),       \
      (event, STREAM(stream), flags))                                                             \
    DRIVER_BESIDE(X)                                                                              \
    DRIVER_BESIDE_NOW(X)                                                                          \
    DRIVER_GRAPH_WRAPPED_TWICE(X)

/* X(symbol, parameters, arguments, bytes): the driver's own memory on the host, counted
   (outside.h). */
#define DRIVER_PASSED_HOST(X)                                                                  \
    X(cuMemAllocHost_v2, (void **address, size_t bytes), (address, bytes), bytes)              \
    X(cuMemHostAlloc, (void **address, size_t bytes, unsigned flags), (address, bytes, flags), \
      bytes)                                                                                   \
    X(cuMemHostRegister_v2, (void *address, size_t bytes, unsigned flags),                     \
      (address, bytes, flags), bytes)

/* X(symbol, parameters, arguments, bytes, kind, handle): on the device, taken from the budget
   (outside.h). The handle is where the driver stores it. */
#define DRIVER_PASSED_DEVICE(X)                                                            \
    X(cuMemAllocManaged, (CUdeviceptr * address, size_t bytes, unsigned flags),            \
      (address, bytes, flags), bytes, OUTSIDE_ADDRESS, address)                            \
    X(cuArrayCreate_v2, (CUarray * array, const struct array_2d *shape), (array, shape),   \
      flat_bytes(shape), OUTSIDE_ARRAY, array)                                             \
    X(cuArray3DCreate_v2, (CUarray * array, const struct array_3d *shape), (array, shape), \
      level_bytes(shape, 1), OUTSIDE_ARRAY, array)                                         \
    X(cuMipmappedArrayCreate,                                                              \
      (CUmipmappedArray * array, const struct array_3d *shape, unsigned levels),           \
      (array, shape, levels), level_bytes(shape, levels), OUTSIDE_MIPMAPPED_ARRAY, array)  \
    X(cuMemCreate,                                                                         \
      (CUpages * pages, size_t bytes, const struct page_properties *properties,            \
       unsigned long long flags),                                                          \
      (pages, bytes, properties, flags), page_bytes(bytes, properties), OUTSIDE_PAGES, pages)

/* X(symbol, parameters, arguments, note): what frees, maps and unmaps such memory; `note` is called
   with caller and result first. */
#define DRIVER_PASSED_FREES(X)                                                                     \
    X(cuArrayDestroy, (CUarray array), (array), outside_freed, (OUTSIDE_ARRAY, (uintptr_t)array))  \
    X(cuMipmappedArrayDestroy, (CUmipmappedArray array), (array), outside_freed,                   \
      (OUTSIDE_MIPMAPPED_ARRAY, (uintptr_t)array))                                                 \
    X(cuMemRelease, (CUpages pages), (pages), outside_freed, (OUTSIDE_PAGES, pages))               \
    X(cuMemMap,                                                                                    \
      (CUdeviceptr address, size_t bytes, size_t offset, CUpages pages, unsigned long long flags), \
      (address, bytes, offset, pages, flags), outside_mapped, (pages, address, bytes))             \
    X(cuMemUnmap, (CUdeviceptr address, size_t bytes), (address, bytes), outside_unmapped,         \
      (address, bytes))

/* X(symbol, parameters): called, but not wrapped in this way. */
#define DRIVER_CALLED(X)                                                                        \
    X(cuInit, (unsigned flags))                                                                 \
    X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                         \
    X(cuCtxSetCurrent, (CUcontext context))                                                     \
    X(cuCtxSynchronize, (void))                                                                 \
    X(cuCtxGetCurrent, (CUcontext * context))                                                   \
    X(cuCtxGetDevice, (CUdevice * device))                                                      \
    X(cuDeviceGetAttribute, (int *value, unsigned attribute, CUdevice device))                  \
    X(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                   \
    X(cuCtxGetStreamPriorityRange, (int *least, int *greatest))                                 \
    X(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority))            \
    X(cuEventCreate, (CUevent * event, unsigned flags))                                         \
    X(cuMemFreeHost, (void *address))                                                           \
    X(cuEventDestroy_v2, (CUevent event))                                                       \
    X(cuEventSynchronize, (CUevent event))                                                      \
    X(cuFuncGetName, (const char **name, CUfunction function))                                  \
    X(cuKernelGetName, (const char **name, CUkernel kernel))                                    \
    X(cuLibraryGetKernelCount, (unsigned *count, CUlibrary library))                            \
    X(cuModuleGetFunctionCount, (unsigned *count, CUmodule module))                             \
    X(cuModuleGetGlobal_v2,                                                                     \
      (CUdeviceptr * address, size_t * bytes, CUmodule module, const char *name))               \
    X(cuLibraryGetGlobal,                                                                       \
      (CUdeviceptr * address, size_t * bytes, CUlibrary library, const char *name))             \
    X(cuFuncGetParamInfo, (CUfunction function, size_t index, size_t * offset, size_t * bytes)) \
    X(cuStreamCreate, (CUstream * stream, unsigned flags))                                      \
    X(cuKernelGetParamInfo, (CUkernel kernel, size_t index, size_t * offset, size_t * bytes))   \
    DRIVER_GRAPH_CALLED(X)

/* Functions about memory that is not the program's allocations, but is used in order with them. */

/* As in DRIVER_WRAPPED_TWICE: on a stream, in order with its other work. */
#define DRIVER_BESIDE(X)                                                                           \
    X(cuMemPrefetchAsync, _ptsz, ALL,                                                              \
      (CUdeviceptr at, size_t bytes, CUdevice to, CUstream stream),                                \
      (at, bytes, to, STREAM(stream)))                                                             \
    X(cuMemPrefetchAsync_v2, _ptsz, ALL,                                                           \
      (CUdeviceptr at, size_t bytes, struct location to, unsigned flags, CUstream stream),         \
      (at, bytes, to, flags, STREAM(stream)))                                                      \
    X(cuMemPrefetchBatchAsync, _ptsz, ALL,                                                         \
      (CUdeviceptr * at, size_t * bytes, size_t count, struct location * to, size_t * first,       \
       size_t to_count, unsigned long long flags, CUstream stream),                                \
      (at, bytes, count, to, first, to_count, flags, STREAM(stream)))                              \
    X(cuMemDiscardBatchAsync, _ptsz, ALL,                                                          \
      (CUdeviceptr * at, size_t * bytes, size_t count, unsigned long long flags, CUstream stream), \
      (at, bytes, count, flags, STREAM(stream)))                                                   \
    X(cuMemDiscardAndPrefetchBatchAsync, _ptsz, ALL,                                               \
      (CUdeviceptr * at, size_t * bytes, size_t count, struct location * to, size_t * first,       \
       size_t to_count, unsigned long long flags, CUstream stream),                                \
      (at, bytes, count, to, first, to_count, flags, STREAM(stream)))                              \
    X(cuStreamAttachMemAsync, _ptsz, ALL,                                                          \
      (CUstream stream, CUdeviceptr at, size_t bytes, unsigned flags),                             \
      (STREAM(stream), at, bytes, flags))                                                          \
    X(cuGraphicsMapResources, _ptsz, ALL,                                                          \
      (unsigned count, CUgraphicsResource *list, CUstream stream), (count, list, STREAM(stream)))  \
    X(cuGraphicsUnmapResources, _ptsz, ALL,                                                        \
      (unsigned count, CUgraphicsResource *list, CUstream stream), (count, list, STREAM(stream)))  \
    X(cuMemMapArrayAsync, _ptsz, ALL, (void *list, unsigned count, CUstream stream),               \
      (list, count, STREAM(stream)))                                                               \
    X(cuMemcpyHtoAAsync_v2, _ptsz, ALL,                                                            \
      (CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream),                \
      (to, offset, from, bytes, STREAM(stream)))                                                   \
    X(cuMemcpyAtoHAsync_v2, _ptsz, ALL,                                                            \
      (void *to, CUarray from, size_t offset, size_t bytes, CUstream stream),                      \
      (to, from, offset, bytes, STREAM(stream)))

/* The same without a stream. */
#define DRIVER_BESIDE_NOW(X)                                                                    \
    X(cuMemcpyHtoA_v2, _ptds, ALL, (CUarray to, size_t offset, const void *from, size_t bytes), \
      (to, offset, from, bytes))                                                                \
    X(cuMemcpyAtoH_v2, _ptds, ALL, (void *to, CUarray from, size_t offset, size_t bytes),       \
      (to, from, offset, bytes))                                                                \
    X(cuMemcpyAtoA_v2, _ptds, ALL,                                                              \
      (CUarray to, size_t offset, CUarray from, size_t from_offset, size_t bytes),              \
      (to, offset, from, from_offset, bytes))

/* Functions about captures and graphs. */

/* As in DRIVER_WRAPPED. */
#define DRIVER_GRAPH_WRAPPED(X)                                                                  \
    X(cuGraphInstantiate, ALL,                                                                   \
      (CUgraphExec * exec, CUgraph graph, CUgraphNode * failed, char *text, size_t bytes),       \
      (exec, graph, failed, text, bytes))                                                        \
    X(cuGraphInstantiate_v2, ALL,                                                                \
      (CUgraphExec * exec, CUgraph graph, CUgraphNode * failed, char *text, size_t bytes),       \
      (exec, graph, failed, text, bytes))                                                        \
    X(cuGraphInstantiateWithFlags, ALL,                                                          \
      (CUgraphExec * exec, CUgraph graph, unsigned long long flags), (exec, graph, flags))       \
    X(cuGraphExecDestroy, ALL, (CUgraphExec exec), (exec))                                       \
    X(cuGraphDestroy, ALL, (CUgraph graph), (graph))                                             \
    X(cuGraphDestroyNode, ALL, (CUgraphNode node), (node))                                       \
    X(cuGraphNodeSetParams, ALL, (CUgraphNode node, void *params), (node, params))               \
    X(cuGraphExecUpdate_v2, ALL, (CUgraphExec exec, CUgraph graph, void *info),                  \
      (exec, graph, info))                                                                       \
    X(cuGraphExecKernelNodeSetParams_v2, ALL,                                                    \
      (CUgraphExec exec, CUgraphNode node, const struct kernel_node *params),                    \
      (exec, node, params))                                                                      \
    X(cuGraphExecMemcpyNodeSetParams, ALL,                                                       \
      (CUgraphExec exec, CUgraphNode node, const struct copy_3d *params, CUcontext context),     \
      (exec, node, params, context))                                                             \
    X(cuGraphExecMemsetNodeSetParams, ALL,                                                       \
      (CUgraphExec exec, CUgraphNode node, const struct memset_node *params, CUcontext context), \
      (exec, node, params, context))                                                             \
    X(cuGraphExecNodeSetParams, ALL, (CUgraphExec exec, CUgraphNode node, void *params),         \
      (exec, node, params))                                                                      \
    X(cuGraphAddKernelNode_v2, ALL,                                                              \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,               \
       const struct kernel_node *params),                                                        \
      (node, graph, before, count, params))                                                      \
    X(cuGraphKernelNodeSetParams_v2, ALL, (CUgraphNode node, const struct kernel_node *params),  \
      (node, params))                                                                            \
    X(cuGraphAddMemcpyNode, ALL,                                                                 \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,               \
       const struct copy_3d *params, CUcontext context),                                         \
      (node, graph, before, count, params, context))                                             \
    X(cuGraphMemcpyNodeSetParams, ALL, (CUgraphNode node, const struct copy_3d *params),         \
      (node, params))                                                                            \
    X(cuGraphAddMemsetNode, ALL,                                                                 \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,               \
       const struct memset_node *params, CUcontext context),                                     \
      (node, graph, before, count, params, context))                                             \
    X(cuGraphMemsetNodeSetParams, ALL, (CUgraphNode node, const struct memset_node *params),     \
      (node, params))

/* As in DRIVER_WRAPPED_TWICE. */
#define DRIVER_GRAPH_WRAPPED_TWICE(X)                                                              \
    X(cuStreamBeginCapture_v2, _ptsz, ALL, (CUstream stream, int mode), (STREAM(stream), mode))    \
    X(cuStreamEndCapture, _ptsz, ALL, (CUstream stream, CUgraph * graph), (STREAM(stream), graph)) \
    X(cuGraphInstantiateWithParams, _ptsz, ALL,                                                    \
      (CUgraphExec * exec, CUgraph graph, struct instantiate_params * params),                     \
      (exec, graph, params))                                                                       \
    X(cuGraphUpload, _ptsz, ALL, (CUgraphExec exec, CUstream stream), (exec, STREAM(stream)))      \
    X(cuGraphLaunch, _ptsz, ALL, (CUgraphExec exec, CUstream stream), (exec, STREAM(stream)))

/* As in DRIVER_CALLED. */
#define DRIVER_GRAPH_CALLED(X)                                                                     \
    X(cuStreamIsCapturing, (CUstream stream, unsigned *status))                                    \
    X(cuStreamGetCaptureInfo_v2, (CUstream stream, unsigned *status, uint64_t *id, CUgraph *graph, \
                                  const CUgraphNode **last, size_t *count))                        \
    X(cuThreadExchangeStreamCaptureMode, (int *mode))                                              \
    X(cuGraphGetNodes, (CUgraph graph, CUgraphNode * nodes, size_t * count))                       \
    X(cuGraphNodeGetType, (CUgraphNode node, unsigned *type))                                      \
    X(cuGraphKernelNodeGetParams_v2, (CUgraphNode node, struct kernel_node * params))              \
    X(cuGraphKernelNodeGetAttribute, (CUgraphNode node, int attribute, void *value))               \
    X(cuGraphMemcpyNodeGetParams, (CUgraphNode node, struct copy_3d * params))                     \
    X(cuGraphMemsetNodeGetParams, (CUgraphNode node, struct memset_node * params))

/*
 * What the shim does in place of the driver's functions, for calls that it takes: on_NAME has the
 * parameters of NAME, without its variants. Thread: any; none of them is called with the core's
 * lock held.
 */
#define HANDLER(name, takers, parameters, arguments) CUresult on_##name parameters;
#define HANDLER_OF_TWO(name, suffix, takers, parameters, arguments) CUresult on_##name parameters;
DRIVER_WRAPPED(HANDLER)
DRIVER_WRAPPED_TWICE(HANDLER_OF_TWO)
#undef HANDLER
#undef HANDLER_OF_TWO

CUresult on_cuCtxSynchronize(void);

#endif
