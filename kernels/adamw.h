/*
 * AdamW: Adam with decay of the weights apart from the gradient. Over one tensor, or over a blob of
 * all of them in one op: the numbers are the same.
 *
 * Where the network works with bf16 weights, the parameter is their fp32 master: a step too small
 * for bf16 is not lost, and the working weights are rounded from the masters by the same op.
 */
#ifndef CAPU_KERNELS_ADAMW_H
#define CAPU_KERNELS_ADAMW_H

#include "capuchin/op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct adamw {
    float *parameter;     /* or the master */
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
    uint16_t *working;    /* bf16, the parameter rounded; NULL: none */
};

/* Reads gradient; updates parameter, first_moment, second_moment; writes working. */
capu_status adamw_update(capu_context *context, const struct adamw *adamw);

capu_status adamw_update_host(capu_stream stream, const void *arguments);

capu_status adamw_update_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif
