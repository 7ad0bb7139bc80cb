/*
 * Causal attention in one op that keeps no scores: memory grows with the length, not with its
 * square. Row t of the output is the mean of the values of the positions up to t, weighted by
 * softmax(query_t . key / sqrt(head_channels)), as the ops of attention.h compute it together.
 *
 * Scores are computed in tiles of 64 queries and 64 keys. A row's sum of exponentials and its
 * output are kept relative to the largest score so far, and scaled when a later tile has a larger
 * one
 * ("online softmax": Milakov and Gimelshein, 2018; with tiles: Dao and others, FlashAttention,
 * 2022). Backward computes the scores again, and from them the weights by the logarithm of the sum
 * that forward stores per row. Every sum has one order, which follows from the shape: there are no
 * atomics; on cuda the gradient of the queries is a kernel of its own, which computes the scores
 * once more.
 *
 * Scores, weights and their gradients are fp32 in either element type. There is no dropout.
 */
#ifndef CAPU_KERNELS_FUSED_ATTENTION_H
#define CAPU_KERNELS_FUSED_ATTENTION_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most channels per head: on cuda a row of a head has to fit registers. */
#define FUSED_ATTENTION_CHANNELS 128u

/* Queries and keys in a tile. */
#define FUSED_ATTENTION_TILE 64u

struct fused_attention {
    const void *qkv; /* batch x length x 3 (query, key, value) x heads x head_channels */
    void *output;    /* batch x length x heads x head_channels */
    float *log_sums; /* batch x heads x length, for backward */
    const void *output_gradient; /* like output */
    void *qkv_gradient;          /* like qkv */
    float *products;             /* like log_sums: scratch memory of backward */
    uint32_t batch;
    uint32_t length;
    uint32_t heads;
    uint32_t head_channels;
    uint32_t element; /* enum element: type of the void buffers */
};

/* The operations check this first. TOO_LARGE: more than FUSED_ATTENTION_CHANNELS channels per head,
   or more positions than a grid has room for (4,194,240). */
capu_status fused_attention_check(const struct fused_attention *attention);

/* Reads qkv; writes output, log_sums. */
capu_status fused_attention_forward(capu_context *context, const struct fused_attention *attention);
/* Reads qkv, output, log_sums, output_gradient; writes qkv_gradient; products is scratch. */
capu_status fused_attention_backward(capu_context *context,
                                     const struct fused_attention *attention);

capu_status fused_attention_forward_host(capu_stream stream, const void *arguments);
capu_status fused_attention_backward_host(capu_stream stream, const void *arguments);

capu_status fused_attention_forward_cuda(capu_stream stream, const void *arguments);
capu_status fused_attention_backward_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
