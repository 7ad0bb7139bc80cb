/* The driver's functions about memory that is not the program's allocations, but is used in order
   with them, for the lists of driver_calls.h. */
#ifndef CAPU_SHIM_DRIVER_BESIDE_CALLS_H
#define CAPU_SHIM_DRIVER_BESIDE_CALLS_H

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

#endif
