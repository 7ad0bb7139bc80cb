/*
 * Drop-in: calls shaped like the CUDA runtime's, on the thread's current context.
 *
 * For loops that call cudaMalloc and cudaMemcpy: make a context current once, then rename the
 * calls. They return a capu_status, which is 0 on success like CUDA's errors. Statuses, ownership
 * and stream order are those of the function each one wraps; INVALID also means that the thread
 * has no current context.
 */
#ifndef CAPU_INCLUDE_DROP_IN_H
#define CAPU_INCLUDE_DROP_IN_H

#include "capuchin/capuchin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a context current on the calling thread; NULL makes none current. The context must stay
   alive as long as it is current. Thread: any. */
CAPU_API void capu_context_make_current(capu_context *context);

/* The calling thread's current context, or NULL. Thread: any. */
CAPU_API capu_context *capu_context_current(void);

/* The direction of a capu_drop_in_memcpy, with the values of cudaMemcpyKind. */
typedef enum capu_memcpy_kind {
    CAPU_HOST_TO_DEVICE = 1,
    CAPU_DEVICE_TO_HOST = 2,
    CAPU_DEVICE_TO_DEVICE = 3
} capu_memcpy_kind;

/* Like cudaMalloc, cudaFree and cudaDeviceSynchronize: capu_malloc, capu_free, capu_synchronize. */
CAPU_API capu_status capu_drop_in_malloc(void **address, size_t bytes);
CAPU_API capu_status capu_drop_in_free(void *address);
CAPU_API capu_status capu_drop_in_synchronize(void);

/* Like cudaMemcpy: capu_upload, capu_download or capu_copy. Host to device returns before the copy
   is done, but the source may be overwritten at once; device to host waits. Copying zero bytes
   succeeds and does nothing. INVALID: `kind` is none of the three. */
CAPU_API capu_status capu_drop_in_memcpy(void *to, const void *from, size_t bytes,
                                         capu_memcpy_kind kind);

/* Like cudaMemset, for the value 0 only: capu_zero. Zero bytes succeed and do nothing.
   UNSUPPORTED: any other value. */
CAPU_API capu_status capu_drop_in_memset(void *address, int value, size_t bytes);

/* capu_run on the current context. */
CAPU_API capu_status capu_drop_in_run(const capu_op *op);

#ifdef __cplusplus
}
#endif

#endif
