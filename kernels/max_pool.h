/*
 * Max-pooling of `planes` = batch x channels images: squares of `window` x `window`, one every
 * `stride` items, over an image with `padding` items around it that are never the largest. What is
 * left over at the right and the bottom is not looked at.
 */
#ifndef CAPU_KERNELS_MAX_POOL_H
#define CAPU_KERNELS_MAX_POOL_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct max_pool {
    const void *input; /* planes x height x width */
    void *output;      /* planes x max_pool_output_height x max_pool_output_width */
    uint8_t *places;   /* of the output's shape: which item of the window was the largest */
    const void *output_gradient;
    void *input_gradient;
    size_t planes;
    uint32_t height;
    uint32_t width;
    uint32_t window;  /* at most 16 */
    uint32_t stride;  /* 0: the window, so that they lie side by side */
    uint32_t padding; /* less than the window: each has an item of the image */
    uint32_t element; /* enum element, of what is void */
};

static inline uint32_t max_pool_stride(const struct max_pool *pool)
{
    return pool->stride != 0 ? pool->stride : pool->window;
}

static inline uint32_t max_pool_output_height(const struct max_pool *pool)
{
    return (pool->height + 2 * pool->padding - pool->window) / max_pool_stride(pool) + 1;
}

static inline uint32_t max_pool_output_width(const struct max_pool *pool)
{
    return (pool->width + 2 * pool->padding - pool->window) / max_pool_stride(pool) + 1;
}

/*
 * What all of the functions below ask first. INVALID: no image, no window, one of more than 16,
 * padding as wide as it, or an image that is smaller with its padding; TOO_LARGE: more than 2^32 -
 * 1 items.
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
