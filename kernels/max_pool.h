/*
 * Max-pooling of `planes` = batch x channels images: squares of `window` x `window` side by side;
 * what is left over at the right and the bottom is not looked at.
 */
#ifndef CAPU_KERNELS_MAX_POOL_H
#define CAPU_KERNELS_MAX_POOL_H

#include "capuchin/op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct max_pool {
    const float *input; /* planes x height x width */
    float *output;      /* planes x (height / window) x (width / window) */
    uint8_t *places;    /* of the output's shape: which item of the window was the largest */
    const float *output_gradient;
    float *input_gradient;
    size_t planes;
    uint32_t height;
    uint32_t width;
    uint32_t window; /* at most 16 */
    uint32_t reserved;
};

/*
 * What all of the functions below ask first. INVALID: no image, no window, one of more than 16, or
 * an image smaller than it; TOO_LARGE: more than 2^32 - 1 items.
 */
capu_status max_pool_check(const struct max_pool *pool);

/* Reads input; writes output, places. */
capu_status max_pool_forward(capu_context *context, const struct max_pool *pool);
/* Reads output_gradient, places; writes input_gradient. */
capu_status max_pool_backward(capu_context *context, const struct max_pool *pool);

capu_status max_pool_forward_host(capu_stream stream, const void *arguments);
capu_status max_pool_backward_host(capu_stream stream, const void *arguments);

capu_status max_pool_forward_cuda(capu_stream stream, const void *arguments);
capu_status max_pool_backward_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
