/* CUDA-shaped calls on the thread's current context: see capuchin/drop_in.h. */
#include "capuchin/drop_in.h"

#include "runtime/api/context.h"
#include "runtime/context/failure.h"

/* The only state outside a context: the context that this thread's drop-in calls use. */
static _Thread_local capu_context *current;

void capu_context_make_current(capu_context *context)
{
    current = context;
}

capu_context *capu_context_current(void)
{
    return current;
}

capu_status capu_drop_in_malloc(void **address, size_t bytes)
{
    return capu_malloc(current, bytes, address);
}

capu_status capu_drop_in_free(void *address)
{
    return capu_free(current, address);
}

capu_status capu_drop_in_synchronize(void)
{
    return capu_synchronize(current);
}

capu_status capu_drop_in_memcpy(void *to, const void *from, size_t bytes, capu_memcpy_kind kind)
{
    bool is_kind = kind >= CAPU_HOST_TO_DEVICE && kind <= CAPU_DEVICE_TO_DEVICE;

    if (bytes == 0 && is_kind) {
        return context_usable(current); /* cudaMemcpy accepts zero bytes; capu_upload does not */
    }
    switch (kind) {
    case CAPU_HOST_TO_DEVICE:
        return capu_upload(current, to, from, bytes);
    case CAPU_DEVICE_TO_HOST:
        return capu_download(current, to, from, bytes);
    case CAPU_DEVICE_TO_DEVICE:
        return capu_copy(current, to, from, bytes);
    default:
        return current == NULL
                   ? CAPU_INVALID
                   : failure_set(&current->failure, CAPU_INVALID,
                                 "capu_drop_in_memcpy: %d is not a capu_memcpy_kind", (int)kind);
    }
}

capu_status capu_drop_in_memset(void *address, int value, size_t bytes)
{
    capu_status status = context_usable(current);

    if (status != CAPU_OK) {
        return status;
    }
    if (value != 0) {
        return failure_set(&current->failure, CAPU_UNSUPPORTED,
                           "capu_drop_in_memset to %d: only the value 0 is supported", value);
    }
    /* Zero bytes mean the rest of the tensor to capu_zero, but nothing to cudaMemset. */
    return bytes == 0 ? CAPU_OK : capu_zero(current, address, bytes);
}

capu_status capu_drop_in_run(const capu_op *op)
{
    return capu_run(current, op);
}
