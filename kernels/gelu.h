/* Gaussian error linear unit, in the approximation by tanh that GPT-2 uses. */
#ifndef CAPU_KERNELS_GELU_H
#define CAPU_KERNELS_GELU_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gelu {
    const void *input;
    void *output;
    void *gradient; /* backward, in place: of the output before, of the input after */
    size_t count;
    uint32_t element; /* enum element, of all three */
};

/* Reads input, writes output. */
capu_status gelu_forward(capu_context *context, const struct gelu *gelu);
/* Reads input, updates gradient. */
capu_status gelu_backward(capu_context *context, const struct gelu *gelu);

capu_status gelu_forward_host(capu_stream stream, const void *arguments);
capu_status gelu_backward_host(capu_stream stream, const void *arguments);

capu_status gelu_forward_cuda(capu_stream stream, const void *arguments);
capu_status gelu_backward_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
