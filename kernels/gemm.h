/*
 * Matrix products on the host: OpenBLAS, made independent of the number of threads.
 *
 * OpenBLAS splits a product by its own thread count and so changes bits with it. Here it always
 * runs on one thread; gemm_run splits the result into blocks of fixed size instead. Here all is
 * fp32: bf16 is for cuda alone (blas.cuh), which takes the same description.
 */
#ifndef CAPU_KERNELS_GEMM_H
#define CAPU_KERNELS_GEMM_H

#include "kernels/element.h"

#include <stdbool.h>
#include <stddef.h>

/* c = a b + beta c, row by row in memory; c is rows x columns, `depth` is summed over. */
struct gemm {
    size_t rows;
    size_t columns;
    size_t depth;
    const void *a; /* rows x depth, or depth x rows if transposed */
    size_t a_stride;
    bool a_transposed;
    bool b_transposed;
    const void *b; /* depth x columns, or columns x depth if transposed */
    size_t b_stride;
    void *c;
    size_t c_stride;
    float beta;           /* 0: c is not read, whatever it holds */
    enum element element; /* of a and b */
    enum element result;  /* of c */
};

/* On the calling thread, in one piece: for operations that split their work themselves. */
void gemm_block(const struct gemm *gemm);

/* In parallel, in blocks of fixed size. */
void gemm_run(const struct gemm *gemm);

#endif
