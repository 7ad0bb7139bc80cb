/*
 * Matrix products on cuda: cuBLAS, with what makes its results repeatable: a handle and a workspace
 * of its own for each stream, no atomics, the same algorithm for the same shape and alignment.
 *
 * cuBLAS is loaded when the first stream is prepared, so that programs start where it is absent:
 * the library named by KERNELS_CUBLAS, or libcublas.so of the toolkit's version.
 *
 * Sums are fp32 in any case. KERNELS_MATMUL chooses how factors that are stored in fp32 enter
 * them: as they are ("fp32", default), or rounded first ("tf32", "bf16"). Factors stored in bf16
 * enter as they are.
 */
#ifndef CAPU_KERNELS_BLAS_CUH
#define CAPU_KERNELS_BLAS_CUH

#include "kernels/blas.h"
#include "kernels/gemm.h"

/* What cuBLAS wants for a workspace on Hopper; elsewhere it would do with less. */
#define BLAS_SCRATCH_BYTES ((size_t)32 << 20)

/* Many products at once, each so many items behind the one before. */
struct blas_batch {
    size_t count;
    size_t a_step;
    size_t b_step;
    size_t c_step;
};

/*
 * Enqueues a product (gemm.h; here the pointers are of the device). `batch` NULL: a single one. Of
 * bf16 factors the result may be bf16, rounded once, or fp32; of fp32 ones it is fp32.
 * Errors: as blas_prepare, if that was not called; DEVICE_FAILED.
 */
capu_status blas_gemm(capu_stream stream, const struct gemm *gemm, const struct blas_batch *batch);

/*
 * The stream's scratch memory, BLAS_SCRATCH_BYTES of it, for work in the stream's order: the next
 * product may overwrite it. Errors: as blas_gemm.
 */
capu_status blas_scratch(capu_stream stream, void **scratch);

#endif
