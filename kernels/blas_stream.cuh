/* What a product needs of the stream it is enqueued on: shared by blas.cu, which owns it, and
 * blas_biased.cu. */
#ifndef CAPU_KERNELS_BLAS_STREAM_CUH
#define CAPU_KERNELS_BLAS_STREAM_CUH

#include "kernels/blas.cuh"
#include "kernels/blas_library.cuh"

/* All of it lives until the process ends, and does not change. */
struct blas_stream {
    const struct blas_functions *functions;
    cublasHandle_t handle; /* also serves as a handle of cublasLt */
    void *scratch;         /* BLAS_SCRATCH_BYTES */
    int device;
    cublasComputeType_t arithmetic; /* for factors stored in fp32 */
};

/* Prepares the stream for products unless it is. Errors: as blas_gemm. */
capu_status blas_stream_of(capu_stream stream, struct blas_stream *out);

static inline cudaDataType blas_type_of(enum element element)
{
    return element == ELEMENT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static inline cublasComputeType_t blas_arithmetic_of(const struct blas_stream *stream,
                                                     enum element element)
{
    return element == ELEMENT_BF16 ? CUBLAS_COMPUTE_32F : stream->arithmetic;
}

#endif
