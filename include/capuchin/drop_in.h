/*
 * Drop-in: calls shaped like the CUDA runtime's, on the thread's current context.
 *
 * For loops that call cudaMalloc and cudaMemcpy: make a context current once, then rename the
 * calls. They return capu_status, 0 on success as CUDA's do. Errors are those of the calls they
 * stand for (capuchin/memory.h), and INVALID where the thread has no current context.
 */
#ifndef CAPU_INCLUDE_DROP_IN_H
#define CAPU_INCLUDE_DROP_IN_H

#include "capuchin/capuchin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a context current on the calling thread; NULL: none. The context must outlive that. */
CAPU_API void capu_context_make_current(capu_context *context);

/* The calling thread's current context, or NULL. */
CAPU_API capu_context *capu_context_current(void);

/* Where the bytes of a capu_drop_in_memcpy come from and go to, as cudaMemcpyKind. */
typedef enum capu_memcpy_kind {
    CAPU_HOST_TO_DEVICE = 1,
    CAPU_DEVICE_TO_HOST = 2,
    CAPU_DEVICE_TO_DEVICE = 3
} capu_memcpy_kind;

/* As cudaMalloc, cudaFree, cudaDeviceSynchronize. */
CAPU_API capu_status capu_drop_in_malloc(void **address, size_t bytes);
CAPU_API capu_status capu_drop_in_free(void *address);
CAPU_API capu_status capu_drop_in_synchronize(void);

/* As cudaMemcpy. Host to device returns before the copy is done, but the source may be overwritten;
   device to host waits. No bytes are none to copy. */
CAPU_API capu_status capu_drop_in_memcpy(void *to, const void *from, size_t bytes,
                                         capu_memcpy_kind kind);

/* As cudaMemset, for the value 0 only, which is what training loops use: UNSUPPORTED for others. */
CAPU_API capu_status capu_drop_in_memset(void *address, int value, size_t bytes);

/* capu_run on the current context. */
CAPU_API capu_status capu_drop_in_run(const capu_op *op);

#ifdef __cplusplus
}
#endif

#endif
