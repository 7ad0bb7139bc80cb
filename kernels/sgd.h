/* Stochastic gradient descent: velocity = momentum velocity + gradient + decay parameter, and
   parameter -= rate velocity. */
#ifndef CAPU_KERNELS_SGD_H
#define CAPU_KERNELS_SGD_H

#include "capuchin/op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sgd {
    float *parameter;
    float *velocity; /* zeros before the first step */
    const float *gradient;
    size_t count;
    float rate;
    float momentum;
    float decay;
};

/* Reads gradient, updates parameter and velocity. */
capu_status sgd_update(capu_context *context, const struct sgd *sgd);

capu_status sgd_update_host(capu_stream stream, const void *arguments);

capu_status sgd_update_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
