/*
 * Max-pooling of `planes` = batch x channels images: one window of `window` x `window` items every
 * `stride` items, over an image that is padded with `padding` items on every side. Padding is never
 * the maximum. Items at the right and the bottom that no whole window covers are ignored.
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
    uint8_t *places;   /* of the output's shape: which item of the window is the maximum */
    const void *output_gradient;
    void *input_gradient;
    size_t planes;
    uint32_t height;
    uint32_t width;
    uint32_t window;  /* at most 16 */
    uint32_t stride;  /* 0: the window, so that windows lie side by side */
    uint32_t padding; /* less than the window, so that every window contains part of the image */
    uint32_t element; /* enum element: type of the void buffers */
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
 * All functions below check this first. INVALID: no image; no window, or one larger than 16;
 * padding as wide as the window; a padded image smaller than the window. TOO_LARGE: more than 2^32
 * - 1 items.
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
