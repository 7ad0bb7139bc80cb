/*
 * The Euclidean norm of a range of gradients, which may be many tensors in one buffer. Gradients of
 * parameters are fp32 even if the parameters are bf16.
 */
#ifndef CAPU_KERNELS_GRADIENT_NORM_H
#define CAPU_KERNELS_GRADIENT_NORM_H

#include "capuchin/op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gradient_norm {
    const float *gradient;
    size_t count;
    float *norm; /* a single item */
};

/* Reads gradient, writes norm. */
capu_status gradient_norm(capu_context *context, const struct gradient_norm *arguments);

capu_status gradient_norm_host(capu_stream stream, const void *arguments);

capu_status gradient_norm_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
