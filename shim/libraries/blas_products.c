/* Matrix products of cuBLAS. C is written as a whole if beta is 0 and there are no gaps in it. */
#include "shim/core/capture.h"
#include "shim/core/core.h"
#include "shim/libraries/blas.h"

struct product {
    cublasHandle_t handle;
    unsigned transpose_a, transpose_b;
    int64_t m, n, k;
    const void *alpha, *beta;
    int scalar_type; /* a cudaDataType, of what alpha and beta are at most as large as */
    struct blas_matrix a, b, c;
};

/* The largest scalar: a complex number of two doubles. */
enum { SCALAR_BYTES = 16 };

/* Scalars that are floats, doubles or halves; other types keep C's old value. */
static bool is_zero(const void *beta, int type)
{
    switch (type) {
    case 0: /* CUDA_R_32F */
        return *(const float *)beta == 0.0f;
    case 1: /* CUDA_R_64F */
        return *(const double *)beta == 0.0;
    case 2: /* CUDA_R_16F */
        return (*(const __half *)beta & 0x7fff) == 0;
    default:
        return false;
    }
}

/* Completes the matrices' shapes and adds them, all that the program has if something is not
   known. */
static void add_operands(struct blas_call *call, struct product *product)
{
    struct operands *operands = &call->operands;
    unsigned mode = BLAS_POINTERS_ON_HOST;
    bool keeps = true;

    if (call->status != BLAS_SUCCESS) {
        return;
    }
    product->a.rows = product->transpose_a == BLAS_NO_TRANSPOSE ? product->m : product->k;
    product->a.columns = product->transpose_a == BLAS_NO_TRANSPOSE ? product->k : product->m;
    product->b.rows = product->transpose_b == BLAS_NO_TRANSPOSE ? product->k : product->n;
    product->b.columns = product->transpose_b == BLAS_NO_TRANSPOSE ? product->n : product->k;
    product->c.rows = product->m;
    product->c.columns = product->n;
    if (product->a.element_bytes == 0 || product->b.element_bytes == 0 ||
        product->c.element_bytes == 0 ||
        blas_calls()->cublasGetPointerMode_v2(product->handle, &mode) != BLAS_SUCCESS) {
        operands_add_all(operands);
        return;
    }
    if (mode == BLAS_POINTERS_ON_HOST) {
        keeps = product->alpha == NULL || product->beta == NULL ||
                !is_zero(product->beta, product->scalar_type) || !blas_is_used(&product->a) ||
                !blas_is_used(&product->b);
    } else {
        operands_add_range(operands, (uintptr_t)product->alpha, SCALAR_BYTES, CAPU_READ);
        operands_add_range(operands, (uintptr_t)product->beta, SCALAR_BYTES, CAPU_READ);
    }
    blas_add_read(operands, &product->a);
    blas_add_read(operands, &product->b);
    blas_add_written(operands, &product->c, keeps);
}

/* The scalars' type, if it is float, double or half: by cublasComputeType_t, for a result of real
   numbers. -1: another one. */
static int scalar_type(unsigned compute, int result_type)
{
    bool is_real = result_type <= 2 || result_type == 14;
    bool is_float = compute == 68 || compute == 69 || (compute >= 74 && compute <= 77);
    bool is_double = compute == 70 || compute == 71;
    bool is_half = compute == 64 || compute == 65;

    return !is_real ? -1 : is_float ? 0 : is_double ? 1 : is_half ? 2 : -1;
}

#define MATRIX(pointer, leading, apart, number, bytes)                               \
    {                                                                                \
        .address = (pointer), .ld = (leading), .stride = (apart), .count = (number), \
        .element_bytes = (bytes)                                                     \
    }

/* What all products begin with. */
#define SHAPE handle, transpose_a, transpose_b, m, n, k, alpha, beta

/* Begins the access, calls the library and ends the access. */
#define CARRY_OUT(name, product, arguments)                                                        \
    do {                                                                                           \
        struct blas_call call = blas_enter(#name);                                                 \
                                                                                                   \
        add_operands(&call, &(product));                                                           \
        return blas_begin(&call, (product).handle) ? blas_end(&call, blas_calls()->name arguments) \
                                                   : call.status;                                  \
    } while (0)

/* For elements and scalars of type T, which is number TYPE of cudaDataType. */
#define PRODUCTS(P, V, T, TYPE)                                                                 \
    cublasStatus_t on_cublas##P##gemm##V(                                                       \
        cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k, \
        const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc) \
    {                                                                                           \
        struct product product = {SHAPE, TYPE, MATRIX(a, lda, 0, 1, sizeof(T)),                 \
                                  MATRIX(b, ldb, 0, 1, sizeof(T)),                              \
                                  MATRIX(c, ldc, 0, 1, sizeof(T))};                             \
                                                                                                \
        CARRY_OUT(                                                                              \
            cublas##P##gemm##V, product,                                                        \
            (handle, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));  \
    }                                                                                           \
                                                                                                \
    cublasStatus_t on_cublas##P##gemmStridedBatched(                                            \
        cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k, \
        const T *alpha, const T *a, int lda, long long stride_a, const T *b, int ldb,           \
        long long stride_b, const T *beta, T *c, int ldc, long long stride_c, int count)        \
    {                                                                                           \
        struct product product = {SHAPE, TYPE, MATRIX(a, lda, stride_a, count, sizeof(T)),      \
                                  MATRIX(b, ldb, stride_b, count, sizeof(T)),                   \
                                  MATRIX(c, ldc, stride_c, count, sizeof(T))};                  \
                                                                                                \
        CARRY_OUT(cublas##P##gemmStridedBatched, product,                                       \
                  (handle, transpose_a, transpose_b, m, n, k, alpha, a, lda, stride_a, b, ldb,  \
                   stride_b, beta, c, ldc, stride_c, count));                                   \
    }
PRODUCTS(S, _v2, float, 0)
PRODUCTS(D, _v2, double, 1)
PRODUCTS(H, , __half, 2)

cublasStatus_t on_cublasSgemmEx(cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b,
                                int m, int n, int k, const float *alpha, const void *a,
                                unsigned type_a, int lda, const void *b, unsigned type_b, int ldb,
                                const float *beta, void *c, unsigned type_c, int ldc)
{
    struct product product = {SHAPE, scalar_type(68, (int)type_c),
                              MATRIX(a, lda, 0, 1, blas_element_bytes(type_a)),
                              MATRIX(b, ldb, 0, 1, blas_element_bytes(type_b)),
                              MATRIX(c, ldc, 0, 1, blas_element_bytes(type_c))};

    CARRY_OUT(cublasSgemmEx, product,
              (handle, transpose_a, transpose_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb,
               beta, c, type_c, ldc));
}

cublasStatus_t on_cublasGemmEx(cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b,
                               int m, int n, int k, const void *alpha, const void *a,
                               unsigned type_a, int lda, const void *b, unsigned type_b, int ldb,
                               const void *beta, void *c, unsigned type_c, int ldc,
                               unsigned compute, int algorithm)
{
    struct product product = {SHAPE, scalar_type(compute, type_c),
                              MATRIX(a, lda, 0, 1, blas_element_bytes(type_a)),
                              MATRIX(b, ldb, 0, 1, blas_element_bytes(type_b)),
                              MATRIX(c, ldc, 0, 1, blas_element_bytes(type_c))};

    CARRY_OUT(cublasGemmEx, product,
              (handle, transpose_a, transpose_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb,
               beta, c, type_c, ldc, compute, algorithm));
}

cublasStatus_t on_cublasGemmStridedBatchedEx(
    cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k,
    const void *alpha, const void *a, unsigned type_a, int lda, long long stride_a, const void *b,
    unsigned type_b, int ldb, long long stride_b, const void *beta, void *c, unsigned type_c,
    int ldc, long long stride_c, int count, unsigned compute, int algorithm)
{
    struct product product = {SHAPE, scalar_type(compute, type_c),
                              MATRIX(a, lda, stride_a, count, blas_element_bytes(type_a)),
                              MATRIX(b, ldb, stride_b, count, blas_element_bytes(type_b)),
                              MATRIX(c, ldc, stride_c, count, blas_element_bytes(type_c))};

    CARRY_OUT(cublasGemmStridedBatchedEx, product,
              (handle, transpose_a, transpose_b, m, n, k, alpha, a, type_a, lda, stride_a, b,
               type_b, ldb, stride_b, beta, c, type_c, ldc, stride_c, count, compute, algorithm));
}

/*
 * cublasLtMatmul. Shapes, and what happens beside the product, are in descriptions of the library,
 * which is asked for them. What is not known makes all memory of the program an operand.
 */

enum layout_attribute {
    LAYOUT_TYPE = 0,
    LAYOUT_ORDER = 1,
    LAYOUT_ROWS = 2,
    LAYOUT_COLUMNS = 3,
    LAYOUT_LD = 4,
    LAYOUT_COUNT = 5,
    LAYOUT_STRIDE = 6,
};

enum { ORDER_COLUMNS = 0, ORDER_ROWS = 1 };

enum description_attribute {
    MATMUL_SCALE_TYPE = 1,
    MATMUL_POINTER_MODE = 2,
    MATMUL_EPILOGUE = 7,
    MATMUL_BIAS = 8,
    MATMUL_AUX = 11,
    MATMUL_AUX_LD = 12,
};

/* Bits of an epilogue. */
enum { EPILOGUE_BIAS = 4, EPILOGUE_BIAS_GRADIENTS = 16 | 256 | 512, EPILOGUE_AUX = 128 };

/* Pointers of a description to what is read or written beside the operands, and is not followed:
   scales of narrow types, and largest values. */
static const int other_pointers[] = {17, 18, 19, 20, 21, 23, 24, 36};

static bool ask_layout(void *layout, enum layout_attribute attribute, void *value, size_t bytes)
{
    size_t got = 0;

    return blas_calls()->cublasLtMatrixLayoutGetAttribute(layout, (int)attribute, value, bytes,
                                                          &got) == BLAS_SUCCESS &&
           got == bytes;
}

static bool ask_description(void *description, int attribute, void *value, size_t bytes)
{
    size_t got = 0;

    return blas_calls()->cublasLtMatmulDescGetAttribute(description, attribute, value, bytes,
                                                        &got) == BLAS_SUCCESS &&
           got == bytes;
}

/* False: the layout is not one of plain columns or rows. */
static bool read_layout(void *layout, const void *address, struct blas_matrix *matrix)
{
    uint32_t type = 0;
    int32_t order = ORDER_COLUMNS;
    int32_t count = 1;
    uint64_t sizes[2] = {0, 0};
    int64_t ld = 0;
    int64_t stride = 0;

    if (!ask_layout(layout, LAYOUT_TYPE, &type, sizeof(type)) ||
        !ask_layout(layout, LAYOUT_ORDER, &order, sizeof(order)) ||
        !ask_layout(layout, LAYOUT_ROWS, &sizes[0], sizeof(sizes[0])) ||
        !ask_layout(layout, LAYOUT_COLUMNS, &sizes[1], sizeof(sizes[1])) ||
        !ask_layout(layout, LAYOUT_LD, &ld, sizeof(ld)) ||
        !ask_layout(layout, LAYOUT_COUNT, &count, sizeof(count)) ||
        !ask_layout(layout, LAYOUT_STRIDE, &stride, sizeof(stride)) ||
        (order != ORDER_COLUMNS && order != ORDER_ROWS)) {
        return false;
    }
    *matrix = (struct blas_matrix){
        .address = address,
        .rows = (int64_t)sizes[order == ORDER_COLUMNS ? 0 : 1],
        .columns = (int64_t)sizes[order == ORDER_COLUMNS ? 1 : 0],
        .ld = ld,
        .stride = stride,
        .count = count,
        .element_bytes = blas_element_bytes(type),
    };
    return matrix->element_bytes != 0;
}

/* Bias and what the epilogue keeps: their extent is not larger than that of the result in its
   type, or in floats. */
static bool add_epilogue(struct operands *operands, void *description,
                         const struct blas_matrix *result)
{
    uint64_t element = result->element_bytes > 4 ? result->element_bytes : 4;
    uint64_t largest = (uint64_t)(result->rows > result->columns ? result->rows : result->columns);
    uint32_t epilogue = 1;
    uint64_t bias = 0;
    uint64_t aux = 0;
    int64_t aux_ld = 0;

    if (!ask_description(description, MATMUL_EPILOGUE, &epilogue, sizeof(epilogue))) {
        return false;
    }
    if ((epilogue & (EPILOGUE_BIAS | EPILOGUE_BIAS_GRADIENTS)) != 0) {
        bool is_written = (epilogue & EPILOGUE_BIAS_GRADIENTS) != 0;

        /* How long gradients are depends on which operand they are of. */
        if (is_written || result->count > 1 ||
            !ask_description(description, MATMUL_BIAS, &bias, sizeof(bias))) {
            return false;
        }
        operands_add_range(operands, bias, largest * element, CAPU_READ);
    }
    if ((epilogue & EPILOGUE_AUX) != 0) {
        if (result->count > 1 || !ask_description(description, MATMUL_AUX, &aux, sizeof(aux)) ||
            !ask_description(description, MATMUL_AUX_LD, &aux_ld, sizeof(aux_ld))) {
            return false;
        }
        operands_add_allocation(operands, aux, CAPU_UPDATE);
    }
    return true;
}

static bool has_other_pointers(void *description)
{
    for (size_t i = 0; i < sizeof(other_pointers) / sizeof(other_pointers[0]); i++) {
        uint64_t address = 0;

        if (ask_description(description, other_pointers[i], &address, sizeof(address)) &&
            address != 0) {
            return true;
        }
    }
    return false;
}

/* Whether beta is 0, as far as that is known. */
static bool is_beta_zero(void *description, const void *beta)
{
    int32_t mode = 0;
    int32_t type = -1;

    if (!ask_description(description, MATMUL_POINTER_MODE, &mode, sizeof(mode)) || mode != 0 ||
        !ask_description(description, MATMUL_SCALE_TYPE, &type, sizeof(type)) || beta == NULL) {
        return false;
    }
    return type == 0 ? *(const float *)beta == 0.0f : type == 1 && *(const double *)beta == 0.0;
}

struct matmul {
    void *description;
    const void *alpha, *beta;
    const void *a, *b, *c;
    void *layout_a, *layout_b, *layout_c;
    void *d, *layout_d;
};

/* False: something is not known. */
static bool add_known(struct operands *operands, const struct matmul *matmul)
{
    struct blas_matrix a;
    struct blas_matrix b;
    struct blas_matrix c;
    struct blas_matrix d;
    int32_t mode = 0;
    bool keeps;

    if (!read_layout(matmul->layout_a, matmul->a, &a) ||
        !read_layout(matmul->layout_b, matmul->b, &b) ||
        !read_layout(matmul->layout_c, matmul->c, &c) ||
        !read_layout(matmul->layout_d, matmul->d, &d) ||
        !ask_description(matmul->description, MATMUL_POINTER_MODE, &mode, sizeof(mode)) ||
        mode != 0 || has_other_pointers(matmul->description) ||
        !add_epilogue(operands, matmul->description, &d)) {
        return false;
    }
    keeps = !is_beta_zero(matmul->description, matmul->beta);
    blas_add_read(operands, &a);
    blas_add_read(operands, &b);
    if (keeps) {
        blas_add_read(operands, &c);
    }
    blas_add_written(operands, &d, keeps && matmul->c == matmul->d);
    return true;
}

cublasStatus_t on_cublasLtMatmul(cublasLtHandle handle, void *description, const void *alpha,
                                 const void *a, void *layout_a, const void *b, void *layout_b,
                                 const void *beta, const void *c, void *layout_c, void *d,
                                 void *layout_d, const void *algorithm, void *workspace,
                                 size_t workspace_bytes, CUstream stream)
{
    const struct matmul matmul = {description, alpha,    beta,     a, b,       c,
                                  layout_a,    layout_b, layout_c, d, layout_d};
    struct blas_call call = blas_enter("cublasLtMatmul");

    if (call.status != BLAS_SUCCESS) {
        return call.status;
    }
    if (!add_known(&call.operands, &matmul)) {
        operands_add_all(&call.operands);
    }
    operands_add_range(&call.operands, (uintptr_t)workspace, workspace_bytes, CAPU_UPDATE);
    if (!blas_begin_on(&call, stream)) {
        return call.status;
    }
    return blas_end(&call, blas_calls()->cublasLtMatmul(
                               handle, description, alpha, a, layout_a, b, layout_b, beta, c,
                               layout_c, d, layout_d, algorithm, workspace, workspace_bytes,
                               capture_takes(stream) ? stream : core_stream(stream)));
}
