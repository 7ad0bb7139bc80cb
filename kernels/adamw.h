/*
 * AdamW: Adam with decay of the weights apart from the gradient. Over one tensor, or over a blob of
 * all of them in one op: the numbers are the same.
 */
#ifndef CAPU_KERNELS_ADAMW_H
#define CAPU_KERNELS_ADAMW_H

#include "capuchin/op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct adamw {
    float *parameter;
    float *first_moment;  /* zeros before the first step */
    float *second_moment; /* zeros before the first step */
    const float *gradient;
    size_t count;
    float rate;
    float beta1;
    float beta2;
    float epsilon;
    float decay;
    float gradient_scale; /* 1, or what clips the norm of all gradients */
    uint32_t step;        /* counted from 1 */
};

/* Reads gradient; updates parameter, first_moment, second_moment. */
capu_status adamw_update(capu_context *context, const struct adamw *adamw);

capu_status adamw_update_host(capu_stream stream, const void *arguments);

capu_status adamw_update_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
