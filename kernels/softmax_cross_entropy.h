/*
 * Softmax and cross-entropy: a loss per row of logits, and their mean. Losses are fp32,
 * whatever the rest is.
 */
#ifndef CAPU_KERNELS_SOFTMAX_CROSS_ENTROPY_H
#define CAPU_KERNELS_SOFTMAX_CROSS_ENTROPY_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct softmax_cross_entropy {
    const void *logits;    /* rows x classes */
    const int32_t *labels; /* rows, 0 <= label < classes */
    void *probabilities;   /* rows x classes */
    float *losses;         /* rows */
    float *mean;           /* a single item */
    void *gradient;        /* backward: of the logits, rows x classes */
    uint32_t rows;
    uint32_t classes;
    float scale;      /* factor of the gradient: 1 / rows for the gradient of the mean loss */
    uint32_t element; /* enum element: type of the void buffers */
};

/*
 * Reads logits, labels; writes probabilities, losses, mean. The op fails for a label that is not a
 * class. On cuda the host cannot check the labels without waiting for them, so the row's loss and
 * gradient become NaN.
 */
capu_status softmax_cross_entropy_forward(capu_context *context,
                                          const struct softmax_cross_entropy *arguments);
/* Reads probabilities, labels; writes gradient. */
capu_status softmax_cross_entropy_backward(capu_context *context,
                                           const struct softmax_cross_entropy *arguments);

capu_status softmax_cross_entropy_forward_host(capu_stream stream, const void *arguments);
capu_status softmax_cross_entropy_backward_host(capu_stream stream, const void *arguments);

capu_status softmax_cross_entropy_forward_cuda(capu_stream stream, const void *arguments);
capu_status softmax_cross_entropy_backward_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
