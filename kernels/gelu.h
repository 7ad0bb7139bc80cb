/* Gaussian error linear unit, in the tanh approximation that GPT-2 uses. */
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
    void *gradient; /* backward, in place: in, of the output; out, of the input */
    size_t count;
    uint32_t element; /* enum element: type of all three buffers */
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
