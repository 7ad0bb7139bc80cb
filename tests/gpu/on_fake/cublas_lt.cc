/*
 * Stands in for cublasLt. An algorithm is proposed for one shape and for the alignments that the
 * preference names, and a product with another shape or with less aligned pointers is rejected, as
 * a GPU's kernel would fail on it. Proposals whose sums could be reduced in bf16, or that got no
 * workspace, are rejected, too. For pointers aligned to less than four bytes there is no algorithm,
 * so that callers must do without.
 */
#include "tests/gpu/on_fake/product.h"
#include "tests/ptx/stand_in/cublasLt.h"

#include <cstring>

#define WORKSPACE_BYTES ((size_t)1 << 20)
#define ALIGNMENT_LEAST 4u

struct cublasLtMatmulDesc {
    cublasComputeType_t arithmetic;
    cublasOperation_t a_operation;
    cublasOperation_t b_operation;
    cublasLtEpilogue_t epilogue;
    const void *bias;
};

struct cublasLtMatrixLayout {
    cudaDataType type;
    int64_t rows;
    int64_t columns;
    int64_t ld;
};

struct cublasLtMatmulPreference {
    uint64_t workspace_bytes;
    uint32_t reduction;
    uint32_t alignment[4]; /* of a, b, c, d */
};

/* What an algorithm is for. */
struct lt_algorithm {
    int64_t m;
    int64_t n;
    int64_t k;
    uint32_t alignment[4];
    uint32_t bias_alignment;
};

static_assert(sizeof(struct lt_algorithm) <= sizeof(cublasLtMatmulAlgo_t), "it must fit");

static uint32_t alignment_of(const void *address)
{
    uintptr_t bits = (uintptr_t)address | 256;

    return (uint32_t)(bits & (~bits + 1));
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *product,
                                        cublasComputeType_t arithmetic, cudaDataType scale_type)
{
    if (scale_type != CUDA_R_32F) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *product = new cublasLtMatmulDesc{arithmetic, CUBLAS_OP_N, CUBLAS_OP_N,
                                      CUBLASLT_EPILOGUE_DEFAULT, NULL};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product)
{
    delete product;
    return CUBLAS_STATUS_SUCCESS;
}

/* Copies a value whose size must be that of the field. */
template <typename Field>
static cublasStatus_t assign(Field *field, const void *value, size_t bytes)
{
    if (bytes != sizeof(*field)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return assign(&product->a_operation, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return assign(&product->b_operation, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return assign(&product->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return assign(&product->bias, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld)
{
    if (ld < (int64_t)rows) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *layout = new cublasLtMatrixLayout{type, (int64_t)rows, (int64_t)columns, ld};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference =
        new cublasLtMatmulPreference{0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return assign(&preference->workspace_bytes, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return assign(&preference->reduction, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return assign(
            &preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value,
            bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

/* Whether op(a) op(b) has the shape of d, and the types match. */
static bool has_shape(const struct cublasLtMatmulDesc &product,
                      const struct cublasLtMatrixLayout &a, const struct cublasLtMatrixLayout &b,
                      const struct cublasLtMatrixLayout &d, struct lt_algorithm *algorithm)
{
    bool is_a_turned = product.a_operation == CUBLAS_OP_T;
    bool is_b_turned = product.b_operation == CUBLAS_OP_T;

    algorithm->m = d.rows;
    algorithm->n = d.columns;
    algorithm->k = is_a_turned ? a.rows : a.columns;
    return (is_a_turned ? a.columns : a.rows) == d.rows &&
           (is_b_turned ? b.rows : b.columns) == d.columns &&
           (is_b_turned ? b.columns : b.rows) == algorithm->k &&
           product.epilogue == CUBLASLT_EPILOGUE_BIAS && product.bias != NULL &&
           product_types_match(a.type, b.type, d.type, product.arithmetic);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *count)
{
    struct lt_algorithm algorithm = {};

    *count = 0;
    if (!has_shape(*product, *a, *b, *d, &algorithm) || wanted < 1 ||
        preference->workspace_bytes < WORKSPACE_BYTES ||
        (preference->reduction & ~(uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    algorithm.bias_alignment = alignment_of(product->bias);
    for (unsigned i = 0; i < 4; i++) {
        algorithm.alignment[i] = preference->alignment[i];
        if (algorithm.alignment[i] < ALIGNMENT_LEAST) {
            return CUBLAS_STATUS_NOT_SUPPORTED;
        }
    }
    memcpy(&results->algo, &algorithm, sizeof(algorithm));
    results->workspaceSize = WORKSPACE_BYTES;
    results->state = CUBLAS_STATUS_SUCCESS;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* Whether an algorithm that was proposed for `from` serves `to`, with these pointers. */
static bool serves(const struct lt_algorithm &from, const struct lt_algorithm &to)
{
    for (unsigned i = 0; i < 4; i++) {
        if (to.alignment[i] < from.alignment[i]) {
            return false;
        }
    }
    return from.m == to.m && from.n == to.n && from.k == to.k &&
           to.bias_alignment >= from.bias_alignment;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *chosen,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    const struct cublasContext *context = (const struct cublasContext *)handle;
    struct lt_algorithm proposed;
    struct lt_algorithm needed = {};
    struct product call = {};
    int device = 0;

    cudaStreamGetDevice(stream, &device);
    memcpy(&proposed, chosen, sizeof(proposed));
    if (device != context->device || workspace == NULL || workspace_bytes < WORKSPACE_BYTES ||
        *(const float *)beta != 0.0f ||
        !has_shape(*product, *a_layout, *b_layout, *d_layout, &needed)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    needed.alignment[0] = alignment_of(a);
    needed.alignment[1] = alignment_of(b);
    needed.alignment[2] = alignment_of(c);
    needed.alignment[3] = alignment_of(d);
    needed.bias_alignment = alignment_of(product->bias);
    if (!serves(proposed, needed)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    call.a_is_transposed = product->a_operation == CUBLAS_OP_T;
    call.b_is_transposed = product->b_operation == CUBLAS_OP_T;
    call.m = needed.m;
    call.n = needed.n;
    call.k = needed.k;
    call.alpha = *(const float *)alpha;
    call.a = a;
    call.lda = a_layout->ld;
    call.b = b;
    call.ldb = b_layout->ld;
    call.c = d;
    call.ldc = d_layout->ld;
    call.type = a_layout->type;
    call.c_type = d_layout->type;
    call.bias = product->bias;
    product_enqueue(stream, &call);
    return CUBLAS_STATUS_SUCCESS;
}
