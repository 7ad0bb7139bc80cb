/*
 * Matrix products on the host: OpenBLAS, made independent of the number of threads.
 *
 * OpenBLAS splits a product by its thread count, and the split decides in which order sums are
 * rounded: the bits of the result would depend on the machine, and a replay could differ from the
 * first run. So OpenBLAS runs on one thread here, and gemm_run splits the result into blocks of
 * fixed size instead, which the pool's threads compute.
 *
 * On the host both types must be fp32 (copies.h widens bf16); cuda takes the same description with
 * either type (blas.cuh).
 */
#ifndef CAPU_KERNELS_GEMM_H
#define CAPU_KERNELS_GEMM_H

#include "kernels/element.h"

#include <stdbool.h>
#include <stddef.h>

/* c = a b + beta c, all stored by rows; c is rows x columns, and `depth` is the summed dimension.
 */
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
    float beta;           /* 0: c is not read, so it may hold anything */
    enum element element; /* of a and b */
    enum element result;  /* of c */
};

/* Computes the product on the calling thread, for operations that split their own work. */
void gemm_block(const struct gemm *gemm);

/* Computes the product in parallel, in blocks of fixed size. */
void gemm_run(const struct gemm *gemm);

#endif
