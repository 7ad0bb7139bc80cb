/* cuBLASLt: products of matrices that are described by objects. */
#include "tests/ptx/cublas/blas.h"
#include "tests/ptx/include/cublaslt_types.h"

#include <stdlib.h>
#include <string.h>

struct cublasLtMatrixLayout {
    cudaDataType type;
    int32_t order; /* by columns, always */
    uint64_t rows;
    uint64_t columns;
    int64_t ld;
    int32_t count;
    int64_t stride;
};

struct cublasLtMatmulDesc {
    cublasComputeType_t compute;
    cudaDataType scale;
    uint32_t pointer_mode;
    uint32_t transa;
    uint32_t transb;
    uint32_t epilogue;
    const void *bias;
    int32_t bias_type; /* negative: that of d */
    void *aux;
    int64_t aux_ld;
};

struct cublasLtMatmulPreference {
    uint64_t words[8];
};

struct cublasLtContext {
    char unused;
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    cublasStatus_t status = blas_enter();

    if (status == CUBLAS_STATUS_SUCCESS) {
        *handle = calloc(1, sizeof(**handle));
        status = *handle != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
    }
    return status;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld)
{
    cublasLtMatrixLayout_t made = calloc(1, sizeof(*made));

    if (made == NULL) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    made->type = type;
    made->rows = rows;
    made->columns = columns;
    made->ld = ld;
    made->count = 1;
    *layout = made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

/* A field that is an attribute; `at` is NULL: there is none. */
struct field {
    void *at;
    size_t bytes;
};

#define FIELD(value) ((struct field){&(value), sizeof(value)})

static struct field layout_field(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t attribute)
{
    switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
        return FIELD(layout->type);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
        return FIELD(layout->order);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
        return FIELD(layout->rows);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
        return FIELD(layout->columns);
    case CUBLASLT_MATRIX_LAYOUT_LD:
        return FIELD(layout->ld);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return FIELD(layout->count);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return FIELD(layout->stride);
    default:
        return (struct field){NULL, 0};
    }
}

static struct field description_field(cublasLtMatmulDesc_t description,
                                      cublasLtMatmulDescAttributes_t attribute)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
        return FIELD(description->compute);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
        return FIELD(description->scale);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
        return FIELD(description->pointer_mode);
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return FIELD(description->transa);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return FIELD(description->transb);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return FIELD(description->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return FIELD(description->bias);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return FIELD(description->bias_type);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return FIELD(description->aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return FIELD(description->aux_ld);
    default:
        return (struct field){NULL, 0};
    }
}

static cublasStatus_t set(struct field field, const void *value, size_t bytes)
{
    if (field.at == NULL) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (value == NULL || bytes != field.bytes) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(field.at, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* With no bytes, only says how many there are. */
static cublasStatus_t get(struct field field, void *value, size_t bytes, size_t *written)
{
    if (field.at == NULL) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (bytes == 0 ? written == NULL : (value == NULL || bytes < field.bytes)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (bytes > 0) {
        memcpy(value, field.at, field.bytes);
    }
    if (written != NULL) {
        *written = field.bytes;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    if (attribute == CUBLASLT_MATRIX_LAYOUT_ORDER && bytes == sizeof(layout->order) &&
        *(const int32_t *)value != CUBLASLT_ORDER_COL) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return set(layout_field(layout, attribute), value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                void *value, size_t bytes, size_t *written)
{
    return get(layout_field(layout, attribute), value, bytes, written);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *description,
                                        cublasComputeType_t compute, cudaDataType_t scale)
{
    cublasLtMatmulDesc_t made;

    if (compute < CUBLAS_COMPUTE_32F || compute > CUBLAS_COMPUTE_32F_FAST_TF32 ||
        scale != CUDA_R_32F) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    made->compute = compute;
    made->scale = scale;
    made->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    made->bias_type = -1;
    *description = made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description)
{
    free(description);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    return set(description_field(description, attribute), value, bytes);
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, void *value,
                                              size_t bytes, size_t *written)
{
    return get(description_field(description, attribute), value, bytes, written);
}

/* Preferences are accepted and mean nothing: there is one algorithm, without a workspace. */
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = calloc(1, sizeof(**preference));
    return *preference != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    (void)attribute;
    (void)value;
    (void)bytes;
    return preference != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static bool is_known(uint32_t epilogue)
{
    uint32_t without_bias = epilogue & ~(uint32_t)CUBLASLT_EPILOGUE_BIAS;

    return epilogue == CUBLASLT_EPILOGUE_DEFAULT || without_bias == 0 ||
           without_bias == CUBLASLT_EPILOGUE_RELU || without_bias == CUBLASLT_EPILOGUE_GELU ||
           without_bias == CUBLASLT_EPILOGUE_GELU_AUX;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *count)
{
    (void)handle;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    (void)preference;
    *count = wanted > 0 && is_known(description->epilogue) ? 1 : 0;
    if (*count == 0) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    memset(&results[0], 0, sizeof(results[0]));
    results[0].wavesCount = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    struct blas_product product;
    uint64_t inner;

    (void)algorithm;
    (void)workspace;
    (void)workspace_bytes;
    if (handle == NULL || blas_enter() != CUBLAS_STATUS_SUCCESS) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (!is_known(description->epilogue) || c_layout->type != d_layout->type) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    inner = description->transa == CUBLAS_OP_N ? a_layout->columns : a_layout->rows;
    if (inner != (description->transb == CUBLAS_OP_N ? b_layout->rows : b_layout->columns)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    product = (struct blas_product){
        .a = a,
        .b = b,
        .c = c,
        .d = d,
        .m = (int)d_layout->rows,
        .n = (int)d_layout->columns,
        .k = (int)inner,
        .ldc = (int)c_layout->ld,
        .ldd = (int)d_layout->ld,
        .a_type = a_layout->type,
        .b_type = b_layout->type,
        .c_type = d_layout->type,
        .a_stride = a_layout->stride,
        .b_stride = b_layout->stride,
        .c_stride = c_layout->stride,
        .d_stride = d_layout->stride,
        .epilogue = description->epilogue & ~1u,
        .bias = description->bias,
        .bias_type = description->bias_type < 0 ? d_layout->type : (unsigned)description->bias_type,
    };
    if (description->epilogue >= CUBLASLT_EPILOGUE_GELU_AUX) {
        product.aux = description->aux;
        product.aux_ld = (int)description->aux_ld;
    }
    blas_strides(description->transa, (int)a_layout->ld, &product.a_row, &product.a_column);
    blas_strides(description->transb, (int)b_layout->ld, &product.b_row, &product.b_column);
    if (!blas_scalars(&product, description->pointer_mode, CUBLAS_COMPUTE_32F, alpha, beta)) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return blas_multiply(product, d_layout->count, stream);
}
