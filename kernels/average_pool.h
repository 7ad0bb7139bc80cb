/* The average of each of `planes` = batch x channels images. */
#ifndef CAPU_KERNELS_AVERAGE_POOL_H
#define CAPU_KERNELS_AVERAGE_POOL_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct average_pool {
    const void *input; /* planes x plane */
    void *output;      /* planes */
    const void *output_gradient;
    void *input_gradient;
    size_t planes;
    uint32_t plane;   /* items of an image */
    uint32_t element; /* enum element: type of the void buffers */
};

/* All functions below check this first. INVALID: no image; TOO_LARGE: more than 2^32 - 33 items. */
capu_status average_pool_check(const struct average_pool *pool);

/* Reads input; writes output. */
capu_status average_pool_forward(capu_context *context, const struct average_pool *pool);
/* Reads output_gradient; writes input_gradient. */
capu_status average_pool_backward(capu_context *context, const struct average_pool *pool);

capu_status average_pool_forward_host(capu_stream stream, const void *arguments);
capu_status average_pool_backward_host(capu_stream stream, const void *arguments);

capu_status average_pool_forward_cuda(capu_stream stream, const void *arguments);
capu_status average_pool_backward_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
