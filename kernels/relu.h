/* Rectified linear unit: output = max(input, 0). */
#ifndef CAPU_KERNELS_RELU_H
#define CAPU_KERNELS_RELU_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct relu {
    const void *input;
    void *output;
    void *gradient; /* backward, in place: in, of the output; out, of the input */
    size_t count;
    uint32_t element; /* enum element: type of all three buffers */
};

/* Reads input, writes output. */
capu_status relu_forward(capu_context *context, const struct relu *relu);
/* Reads output, updates gradient. */
capu_status relu_backward(capu_context *context, const struct relu *relu);

capu_status relu_forward_host(capu_stream stream, const void *arguments);
capu_status relu_backward_host(capu_stream stream, const void *arguments);

capu_status relu_forward_cuda(capu_stream stream, const void *arguments);
capu_status relu_backward_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
