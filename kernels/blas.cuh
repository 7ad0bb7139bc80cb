/*
 * Matrix products on cuda: cuBLAS and cublasLt, set up so that their results are repeatable: each
 * stream has a handle and a workspace of its own, there are no atomics, and the same shape and
 * alignment get the same algorithm.
 *
 * They are loaded when the first stream with products is prepared, so that programs start without
 * them: the libcublas that KERNELS_CUBLAS names, or libcublas.so of the toolkit's version, and the
 * libcublasLt that it depends on (blas_library.cuh).
 *
 * Sums are always fp32. KERNELS_MATMUL decides how factors that are stored in fp32 enter them: as
 * they are ("fp32", the default), or rounded first ("tf32", "bf16"). Factors stored in bf16 enter
 * as they are.
 */
#ifndef CAPU_KERNELS_BLAS_CUH
#define CAPU_KERNELS_BLAS_CUH

#include "kernels/blas.h"
#include "kernels/gemm.h"

/* The workspace that cuBLAS recommends on Hopper; elsewhere less would do. */
#define BLAS_SCRATCH_BYTES ((size_t)32 << 20)

/* Many products in one call; the factors and results of one begin that many items after the
 * previous ones. */
struct blas_batch {
    size_t count;
    size_t a_step;
    size_t b_step;
    size_t c_step;
};

/*
 * Enqueues a product (gemm.h; the pointers are device addresses). `batch` NULL: a single one. With
 * bf16 factors the result is bf16, rounded once, or fp32; with fp32 factors it is fp32.
 * Errors: as blas_prepare, if that was not called; DEVICE_FAILED.
 */
capu_status blas_gemm(capu_stream stream, const struct gemm *gemm, const struct blas_batch *batch);

/*
 * Enqueues a single product with a bias: `bias` has one item of the type of the result per column,
 * which is added to the sums of each row before they are rounded. cublasLt adds it as it stores the
 * sums, which spares a pass over the result. Pre: gemm->beta is 0. If cublasLt has no algorithm for
 * this shape at the alignment of these buffers, *is_done becomes false and nothing is enqueued; the
 * same shape and alignment always get the same answer. Errors: those of blas_gemm; NO_HOST_MEMORY.
 */
capu_status blas_gemm_biased(capu_stream stream, const struct gemm *gemm, const void *bias,
                             bool *is_done);

/*
 * The stream's scratch memory of BLAS_SCRATCH_BYTES, for work in the order of the stream: the next
 * product may overwrite it. Errors: as blas_gemm.
 */
capu_status blas_scratch(capu_stream stream, void **scratch);

#endif
