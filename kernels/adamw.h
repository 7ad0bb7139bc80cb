/*
 * AdamW: Adam with weight decay decoupled from the gradient. It updates one tensor, or a buffer
 * that holds all of them in one op: the results are the same.
 *
 * If the network works with bf16 weights, the parameter is their fp32 master, so that steps too
 * small for bf16 accumulate. The same op rounds the working weights from the masters.
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
