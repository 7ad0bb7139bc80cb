/* Stands in for the cuda device in a library that is built without a CUDA toolkit. */
#include "device/device.h"

#include <stdio.h>

capu_status cuda_device_create(const struct device_options *options, struct device **device,
                               char *text, size_t text_bytes)
{
    unsigned ordinal = options != NULL ? (unsigned)options->ordinal : 0;

    (void)device;
    if (text != NULL && text_bytes > 0) {
        snprintf(text, text_bytes, "cuda:%u: this library was built without CUDA", ordinal);
    }
    return CAPU_NO_DEVICE;
}
