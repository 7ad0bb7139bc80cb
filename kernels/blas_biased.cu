/*
 * A product with a bias, by cublasLt. Unlike cuBLAS it lets the caller choose among the algorithms
 * that it proposes. The first one proposed for a shape and alignment is kept, so that asking costs
 * time only once, and the same product always gets the same algorithm.
 */
#include "kernels/blas_stream.cuh"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What the choice of an algorithm depends on. Compared as bytes, so without gaps. */
struct key {
    uint64_t rows;
    uint64_t columns;
    uint64_t depth;
    uint64_t a_stride;
    uint64_t b_stride;
    uint64_t c_stride;
    uint32_t a_alignment;
    uint32_t b_alignment;
    uint32_t c_alignment;
    uint32_t bias_alignment;
    uint32_t transposed; /* 1: a; 2: b */
    uint32_t element;
    uint32_t result;
    int32_t device;
};

struct algorithm {
    struct algorithm *next;
    struct key key;
    bool is_there;
    cublasLtMatmulAlgo_t algorithm;
};

/* Guarded by the lock. Algorithms never change and are never removed. */
static struct {
    pthread_mutex_t lock;
    struct algorithm *first;
} algorithms = {PTHREAD_MUTEX_INITIALIZER, NULL};

/* A call of cublasLt: matrices are column-major, so the factors are swapped (blas.cu). */
struct call {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a; /* of gemm->b */
    cublasLtMatrixLayout_t b; /* of gemm->a */
    cublasLtMatrixLayout_t c;
};

/* The largest power of two up to 256, the default of cublasLt, that divides the address. */
static uint32_t alignment_of(const void *address)
{
    uintptr_t bits = (uintptr_t)address | 256;

    return (uint32_t)(bits & (~bits + 1));
}

static struct key key_of(const struct blas_stream *on, const struct gemm *gemm, const void *bias)
{
    struct key key = {};

    key.rows = gemm->rows;
    key.columns = gemm->columns;
    key.depth = gemm->depth;
    key.a_stride = gemm->a_stride;
    key.b_stride = gemm->b_stride;
    key.c_stride = gemm->c_stride;
    key.a_alignment = alignment_of(gemm->a);
    key.b_alignment = alignment_of(gemm->b);
    key.c_alignment = alignment_of(gemm->c);
    key.bias_alignment = alignment_of(bias);
    key.transposed = (gemm->a_transposed ? 1u : 0u) | (gemm->b_transposed ? 2u : 0u);
    key.element = gemm->element;
    key.result = gemm->result;
    key.device = on->device;
    return key;
}

static bool set(const struct blas_stream *on, cublasLtMatmulDesc_t product,
                cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes)
{
    return on->functions->lt_product_set(product, attribute, value, bytes) == CUBLAS_STATUS_SUCCESS;
}

/* A matrix stored by rows is its transpose stored by columns. */
static bool describe(const struct blas_stream *on, enum element element, size_t rows,
                     size_t columns, size_t stride, cublasLtMatrixLayout_t *layout)
{
    return on->functions->lt_layout_create(layout, blas_type_of(element), columns, rows,
                                           (int64_t)stride) == CUBLAS_STATUS_SUCCESS;
}

static bool describe_product(const struct blas_stream *on, const struct gemm *gemm,
                             const void *bias, struct call *call)
{
    cublasOperation_t a_operation = gemm->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t b_operation = gemm->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;

    return on->functions->lt_product_create(&call->product, blas_arithmetic_of(on, gemm->element),
                                            CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           set(on, call->product, CUBLASLT_MATMUL_DESC_TRANSA, &a_operation, sizeof(a_operation)) &&
           set(on, call->product, CUBLASLT_MATMUL_DESC_TRANSB, &b_operation, sizeof(b_operation)) &&
           set(on, call->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)) &&
           set(on, call->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
}

static void call_finish(const struct blas_stream *on, struct call *call)
{
    if (call->c != NULL) {
        on->functions->lt_layout_destroy(call->c);
    }
    if (call->b != NULL) {
        on->functions->lt_layout_destroy(call->b);
    }
    if (call->a != NULL) {
        on->functions->lt_layout_destroy(call->a);
    }
    if (call->product != NULL) {
        on->functions->lt_product_destroy(call->product);
    }
}

static capu_status call_init(const struct blas_stream *on, const struct gemm *gemm,
                             const void *bias, struct call *call)
{
    size_t a_rows = gemm->a_transposed ? gemm->depth : gemm->rows;
    size_t a_columns = gemm->a_transposed ? gemm->rows : gemm->depth;
    size_t b_rows = gemm->b_transposed ? gemm->columns : gemm->depth;
    size_t b_columns = gemm->b_transposed ? gemm->depth : gemm->columns;

    *call = {};
    if (!describe_product(on, gemm, bias, call) ||
        !describe(on, gemm->element, b_rows, b_columns, gemm->b_stride, &call->a) ||
        !describe(on, gemm->element, a_rows, a_columns, gemm->a_stride, &call->b) ||
        !describe(on, gemm->result, gemm->rows, gemm->columns, gemm->c_stride, &call->c)) {
        call_finish(on, call);
        return CAPU_DEVICE_FAILED;
    }
    return CAPU_OK;
}

static bool prefer(const struct blas_stream *on, cublasLtMatmulPreference_t preference,
                   cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t bytes)
{
    return on->functions->lt_preference_set(preference, attribute, value, bytes) ==
           CUBLAS_STATUS_SUCCESS;
}

/* The parts of a product that is split along its depth are added in fp32, in a fixed order. What
   the alignment of the bias allows, cublasLt sees at its address. */
static bool describe_preference(const struct blas_stream *on, const struct key *key,
                                cublasLtMatmulPreference_t preference)
{
    uint64_t scratch_bytes = BLAS_SCRATCH_BYTES;
    uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

    return prefer(on, preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &scratch_bytes,
                  sizeof(scratch_bytes)) &&
           prefer(on, preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction,
                  sizeof(reduction)) &&
           prefer(on, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &key->b_alignment,
                  sizeof(key->b_alignment)) &&
           prefer(on, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &key->a_alignment,
                  sizeof(key->a_alignment)) &&
           prefer(on, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &key->c_alignment,
                  sizeof(key->c_alignment)) &&
           prefer(on, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &key->c_alignment,
                  sizeof(key->c_alignment));
}

/* Asks for an algorithm. There may be none, which is not an error. */
static capu_status ask(const struct blas_stream *on, const struct call *call,
                       struct algorithm *algorithm)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t proposed = {};
    int count = 0;
    cublasStatus_t result = CUBLAS_STATUS_INTERNAL_ERROR;

    if (on->functions->lt_preference_create(&preference) != CUBLAS_STATUS_SUCCESS) {
        return CAPU_NO_HOST_MEMORY;
    }
    if (describe_preference(on, &algorithm->key, preference)) {
        result =
            on->functions->lt_choose((cublasLtHandle_t)on->handle, call->product, call->a, call->b,
                                     call->c, call->c, preference, 1, &proposed, &count);
    }
    on->functions->lt_preference_destroy(preference);
    if (result != CUBLAS_STATUS_SUCCESS && result != CUBLAS_STATUS_NOT_SUPPORTED) {
        return CAPU_DEVICE_FAILED;
    }
    algorithm->is_there =
        result == CUBLAS_STATUS_SUCCESS && count == 1 && proposed.state == CUBLAS_STATUS_SUCCESS;
    algorithm->algorithm = proposed.algo;
    return CAPU_OK;
}

/* Under the lock: the algorithm that was chosen before, or a new one. */
static capu_status choose(const struct blas_stream *on, const struct key *key,
                          const struct call *call, struct algorithm **out)
{
    struct algorithm *algorithm = algorithms.first;
    capu_status status;

    while (algorithm != NULL && memcmp(&algorithm->key, key, sizeof(*key)) != 0) {
        algorithm = algorithm->next;
    }
    if (algorithm == NULL) {
        algorithm = (struct algorithm *)calloc(1, sizeof(*algorithm));
        if (algorithm == NULL) {
            return CAPU_NO_HOST_MEMORY;
        }
        algorithm->key = *key;
        status = ask(on, call, algorithm);
        if (status != CAPU_OK) {
            free(algorithm);
            return status;
        }
        algorithm->next = algorithms.first;
        algorithms.first = algorithm;
    }
    *out = algorithm;
    return CAPU_OK;
}

static capu_status multiply(const struct blas_stream *on, capu_stream stream,
                            const struct gemm *gemm, const struct key *key, const struct call *call,
                            bool *is_done)
{
    const float alpha = 1.0f;
    const float beta = 0.0f;
    struct algorithm *chosen = NULL;
    capu_status status;

    pthread_mutex_lock(&algorithms.lock);
    status = choose(on, key, call, &chosen);
    pthread_mutex_unlock(&algorithms.lock);
    if (status != CAPU_OK) {
        return status;
    }
    *is_done = chosen->is_there;
    if (!chosen->is_there) {
        return CAPU_OK;
    }
    return on->functions->lt_multiply((cublasLtHandle_t)on->handle, call->product, &alpha, gemm->b,
                                      call->a, gemm->a, call->b, &beta, gemm->c, call->c, gemm->c,
                                      call->c, &chosen->algorithm, on->scratch, BLAS_SCRATCH_BYTES,
                                      (cudaStream_t)stream) == CUBLAS_STATUS_SUCCESS
               ? CAPU_OK
               : CAPU_DEVICE_FAILED;
}

capu_status blas_gemm_biased(capu_stream stream, const struct gemm *gemm, const void *bias,
                             bool *is_done)
{
    struct blas_stream on;
    struct call call;
    struct key key;
    capu_status status = blas_stream_of(stream, &on);

    if (status != CAPU_OK) {
        return status;
    }
    status = call_init(&on, gemm, bias, &call);
    if (status != CAPU_OK) {
        return status;
    }
    key = key_of(&on, gemm, bias);
    status = multiply(&on, stream, gemm, &key, &call, is_done);
    call_finish(&on, &call);
    return status;
}
