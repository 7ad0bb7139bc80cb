/*
 * Drop-in: calls shaped like the CUDA runtime's, on the thread's current context.
 *
 * For loops that call cudaMalloc and cudaMemcpy: make a context current once
 * (capu_context_make_current), then rename the calls. They return a capu_status, which is 0 on
 * success like CUDA's errors. Statuses, ownership and stream order are those of the function each
 * one wraps.
 */
#ifndef CAPU_INCLUDE_DROP_IN_H
#define CAPU_INCLUDE_DROP_IN_H

#include "capuchin/capuchin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The direction of a capu_drop_in_memcpy, with the values of cudaMemcpyKind. */
typedef enum capu_memcpy_kind {
    CAPU_HOST_TO_DEVICE = 1,
    CAPU_DEVICE_TO_HOST = 2,
    CAPU_DEVICE_TO_DEVICE = 3
} capu_memcpy_kind;

/* Like cudaMalloc, cudaFree and cudaDeviceSynchronize: capu_malloc, capu_free, capu_synchronize. */
static inline capu_status capu_drop_in_malloc(void **address, size_t bytes)
{
    return capu_malloc(NULL, bytes, address);
}

static inline capu_status capu_drop_in_free(void *address)
{
    return capu_free(NULL, address);
}

static inline capu_status capu_drop_in_synchronize(void)
{
    return capu_synchronize(NULL);
}

/* Like cudaMemcpy: capu_upload, capu_download or capu_copy. Host to device returns before the copy
   is done, but the source may be overwritten at once; device to host waits. Copying zero bytes
   does nothing, and succeeds where there is a current context, whatever state that is in. INVALID:
   `kind` is none of the three. */
static inline capu_status capu_drop_in_memcpy(void *to, const void *from, size_t bytes,
                                              capu_memcpy_kind kind)
{
    if (kind < CAPU_HOST_TO_DEVICE || kind > CAPU_DEVICE_TO_DEVICE) {
        return capu_explain(NULL, CAPU_INVALID, "capu_drop_in_memcpy: not a capu_memcpy_kind");
    }
    if (bytes == 0) {
        return capu_context_current() != NULL ? CAPU_OK : CAPU_INVALID;
    }
    return kind == CAPU_HOST_TO_DEVICE   ? capu_upload(NULL, to, from, bytes, 0)
           : kind == CAPU_DEVICE_TO_HOST ? capu_download(NULL, to, from, bytes, 0)
                                         : capu_copy(NULL, to, from, bytes);
}

/* Like cudaMemset, for the value 0 only: capu_zero. Zero bytes as in capu_drop_in_memcpy.
   UNSUPPORTED: any other value. */
static inline capu_status capu_drop_in_memset(void *address, int value, size_t bytes)
{
    if (capu_context_current() == NULL) {
        return CAPU_INVALID;
    }
    if (value != 0) {
        return capu_explain(NULL, CAPU_UNSUPPORTED,
                            "capu_drop_in_memset: only the value 0 is supported");
    }
    return bytes == 0 ? CAPU_OK : capu_zero(NULL, address, bytes);
}

#ifdef __cplusplus
}
#endif

#endif
