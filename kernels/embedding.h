/*
 * Token and position embedding: output[b][t] = token_weight[tokens[b][t]] + position_weight[t].
 * The parameters' gradients are fp32, whatever the element type.
 */
#ifndef CAPU_KERNELS_EMBEDDING_H
#define CAPU_KERNELS_EMBEDDING_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct embedding {
    const int32_t *tokens;       /* batch x length, 0 <= token < vocabulary */
    const void *token_weight;    /* vocabulary x channels */
    const void *position_weight; /* at least length x channels */
    void *output;                /* batch x length x channels */
    const void *output_gradient;
    float *token_gradient;    /* accumulated */
    float *position_gradient; /* accumulated */
    uint32_t batch;
    uint32_t length;
    uint32_t channels;
    uint32_t vocabulary;
    uint32_t element; /* enum element: type of the void buffers */
};

/*
 * Reads tokens, token_weight, position_weight; writes output. The op fails for an unknown token. On
 * cuda the host cannot check the tokens without waiting for them, so the token's row becomes NaN,
 * and the backward pass skips it. On cuda the backward pass is TOO_LARGE for more than 2^31 - 1
 * rows or 16,776,960 channels.
 */
capu_status embedding_forward(capu_context *context, const struct embedding *embedding);
/* Reads tokens, output_gradient; updates token_gradient, position_gradient. */
capu_status embedding_backward(capu_context *context, const struct embedding *embedding);

capu_status embedding_forward_host(capu_stream stream, const void *arguments);
capu_status embedding_backward_host(capu_stream stream, const void *arguments);

capu_status embedding_forward_cuda(capu_stream stream, const void *arguments);
capu_status embedding_backward_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
