/*
 * Stochastic gradient descent: velocity = momentum velocity + gradient + decay parameter, and
 * parameter -= rate velocity.
 *
 * If the network works with bf16 weights, the parameter is their fp32 master, as in adamw.h.
 */
#ifndef CAPU_KERNELS_SGD_H
#define CAPU_KERNELS_SGD_H

#include "capuchin/op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sgd {
    float *parameter; /* or the master */
    float *velocity;  /* zeros before the first step */
    const float *gradient;
    size_t count;
    float rate;
    float momentum;
    float decay;
    uint16_t *working; /* bf16, the parameter rounded; NULL: none */
};

/* Reads gradient; updates parameter and velocity; writes working. */
capu_status sgd_update(capu_context *context, const struct sgd *sgd);

capu_status sgd_update_host(capu_stream stream, const void *arguments);

capu_status sgd_update_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
