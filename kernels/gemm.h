/*
 * Matrix products on the host: OpenBLAS, made independent of the number of threads.
 *
 * OpenBLAS splits a product by its own thread count and so changes bits with it. Here it always
 * runs on one thread; gemm_run splits the result into blocks of fixed size instead.
 */
#ifndef CAPU_KERNELS_GEMM_H
#define CAPU_KERNELS_GEMM_H

#include <stdbool.h>
#include <stddef.h>

/* c = a b + beta c, row by row in memory; c is rows x columns, `depth` is summed over. */
struct gemm {
    size_t rows;
    size_t columns;
    size_t depth;
    const float *a; /* rows x depth, or depth x rows if transposed */
    size_t a_stride;
    bool a_transposed;
    bool b_transposed;
    const float *b; /* depth x columns, or columns x depth if transposed */
    size_t b_stride;
    float *c;
    size_t c_stride;
    float beta; /* 0: c is not read, whatever it holds */
};

/* On the calling thread, in one piece: for operations that split their work themselves. */
void gemm_block(const struct gemm *gemm);

/* In parallel, in blocks of fixed size. */
void gemm_run(const struct gemm *gemm);

#endif
