/*
 * Causal attention as separate ops, as GPU programs without a fused kernel run it. Each row of the
 * input holds query, key and value side by side; it is split by head into three parts of one
 * buffer:
 *
 *     qkv --split--> parts = query | key | value
 *     query, key --scores--> scores --softmax--> weights (lower triangle only)
 *     weights, value --mix--> mixed --merge--> output
 *
 * The matrices of scores and weights grow with the square of the length, which is what makes
 * attention interesting for a memory manager: they are large, and cheap to recompute.
 *
 * The backward pass has one op for each of them. It writes the three parts of parts_gradient one by
 * one. A write to a part of a tensor keeps the rest, so the tensor must have contents: clear it
 * first (capu_zero is cheap).
 */
#ifndef CAPU_KERNELS_ATTENTION_H
#define CAPU_KERNELS_ATTENTION_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct attention {
    const void *qkv; /* batch x length x 3 x heads x head_channels */
    void *parts;     /* 3 x batch x heads x length x head_channels */
    void *scores;    /* batch x heads x length x length, not yet scaled */
    void *weights;   /* like scores; each row sums to 1; zero above the diagonal */
    void *mixed;     /* batch x heads x length x head_channels */
    void *output;    /* batch x length x heads x head_channels */
    void *qkv_gradient;
    void *parts_gradient;
    void *scores_gradient;
    void *weights_gradient;
    void *mixed_gradient;
    const void *output_gradient;
    uint32_t batch;
    uint32_t length;
    uint32_t heads;
    uint32_t head_channels;
    uint32_t element; /* enum element: type of all buffers */
};

/* Reads qkv, writes parts. */
capu_status attention_split_forward(capu_context *context, const struct attention *attention);
/* Reads query and key, writes all of scores, also above the diagonal. */
capu_status attention_scores_forward(capu_context *context, const struct attention *attention);
/* Reads scores, writes weights. Kernels write only the lower triangle, so the op clears weights. */
capu_status attention_softmax_forward(capu_context *context, const struct attention *attention);
/* Reads all of weights, and value; writes mixed. */
capu_status attention_mix_forward(capu_context *context, const struct attention *attention);
/* Reads mixed, writes output. */
capu_status attention_merge_forward(capu_context *context, const struct attention *attention);

/* Reads output_gradient, writes mixed_gradient. */
capu_status attention_merge_backward(capu_context *context, const struct attention *attention);
/* Reads mixed_gradient and value, writes weights_gradient. */
capu_status attention_mix_backward_weights(capu_context *context,
                                           const struct attention *attention);
/* Reads weights and mixed_gradient, writes the value's part of parts_gradient. */
capu_status attention_mix_backward_value(capu_context *context, const struct attention *attention);
/* Reads weights and weights_gradient; clears and writes scores_gradient. */
capu_status attention_softmax_backward(capu_context *context, const struct attention *attention);
/* Reads scores_gradient and key, writes the query's part of parts_gradient. */
capu_status attention_scores_backward_query(capu_context *context,
                                            const struct attention *attention);
/* Reads scores_gradient and query, writes the key's part of parts_gradient. */
capu_status attention_scores_backward_key(capu_context *context, const struct attention *attention);
/* Reads parts_gradient, writes qkv_gradient. */
capu_status attention_split_backward(capu_context *context, const struct attention *attention);

capu_status attention_split_forward_host(capu_stream stream, const void *arguments);
capu_status attention_scores_forward_host(capu_stream stream, const void *arguments);
capu_status attention_softmax_forward_host(capu_stream stream, const void *arguments);
capu_status attention_mix_forward_host(capu_stream stream, const void *arguments);
capu_status attention_merge_forward_host(capu_stream stream, const void *arguments);
capu_status attention_merge_backward_host(capu_stream stream, const void *arguments);
capu_status attention_mix_backward_weights_host(capu_stream stream, const void *arguments);
capu_status attention_mix_backward_value_host(capu_stream stream, const void *arguments);
capu_status attention_softmax_backward_host(capu_stream stream, const void *arguments);
capu_status attention_scores_backward_query_host(capu_stream stream, const void *arguments);
capu_status attention_scores_backward_key_host(capu_stream stream, const void *arguments);
capu_status attention_split_backward_host(capu_stream stream, const void *arguments);

capu_status attention_split_forward_cuda(capu_stream stream, const void *arguments);
capu_status attention_scores_forward_cuda(capu_stream stream, const void *arguments);
capu_status attention_softmax_forward_cuda(capu_stream stream, const void *arguments);
capu_status attention_mix_forward_cuda(capu_stream stream, const void *arguments);
capu_status attention_merge_forward_cuda(capu_stream stream, const void *arguments);
capu_status attention_merge_backward_cuda(capu_stream stream, const void *arguments);
capu_status attention_mix_backward_weights_cuda(capu_stream stream, const void *arguments);
capu_status attention_mix_backward_value_cuda(capu_stream stream, const void *arguments);
capu_status attention_softmax_backward_cuda(capu_stream stream, const void *arguments);
capu_status attention_scores_backward_query_cuda(capu_stream stream, const void *arguments);
capu_status attention_scores_backward_key_cuda(capu_stream stream, const void *arguments);
capu_status attention_split_backward_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
