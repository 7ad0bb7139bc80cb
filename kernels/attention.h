/*
 * Causal attention, as ops of their own, the way GPU programs have them. The input holds query, key
 * and value of a row side by side; it is split into three parts of one buffer, head by head:
 *
 *     qkv --split--> parts = query | key | value
 *     query, key --scores--> scores --softmax--> weights (lower triangle only)
 *     weights, value --mix--> mixed --merge--> output
 *
 * Backward undoes each; a part of the parts' gradient is a partial write, so the buffer has to be
 * cleared first (capu_zero costs nothing).
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
    void *weights;   /* like scores; each row sums to 1, zero above the diagonal */
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
    uint32_t element; /* enum element, of all buffers */
};

/* Reads qkv, writes parts. */
capu_status attention_split_forward(capu_context *context, const struct attention *attention);
/* Reads query and key, writes scores, also above the diagonal. */
capu_status attention_scores_forward(capu_context *context, const struct attention *attention);
/* Reads scores; writes weights, which is cleared, since only the lower triangle is written. */
capu_status attention_softmax_forward(capu_context *context, const struct attention *attention);
/* Reads weights, all of them, and value; writes mixed. */
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
/* Reads weights and weights_gradient; writes scores_gradient, which is cleared. */
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
