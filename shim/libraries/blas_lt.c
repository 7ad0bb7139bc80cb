/*
 * cublasLtMatmul. Shapes, and what happens beside the product, are in descriptions of the library,
 * which is asked for them. What is not known makes all memory of the program an operand.
 */
#include "shim/core/capture.h"
#include "shim/core/core.h"
#include "shim/libraries/blas.h"

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

static bool ask(void *description, int attribute, void *value, size_t bytes)
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

    if (!ask(description, MATMUL_EPILOGUE, &epilogue, sizeof(epilogue))) {
        return false;
    }
    if ((epilogue & (EPILOGUE_BIAS | EPILOGUE_BIAS_GRADIENTS)) != 0) {
        bool is_written = (epilogue & EPILOGUE_BIAS_GRADIENTS) != 0;

        /* How long gradients are depends on which operand they are of. */
        if (is_written || result->count > 1 ||
            !ask(description, MATMUL_BIAS, &bias, sizeof(bias))) {
            return false;
        }
        operands_add_range(operands, bias, largest * element, CAPU_READ);
    }
    if ((epilogue & EPILOGUE_AUX) != 0) {
        if (result->count > 1 || !ask(description, MATMUL_AUX, &aux, sizeof(aux)) ||
            !ask(description, MATMUL_AUX_LD, &aux_ld, sizeof(aux_ld))) {
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

        if (ask(description, other_pointers[i], &address, sizeof(address)) && address != 0) {
            return true;
        }
    }
    return false;
}

/* Whether beta is 0, as far as that is known. */
static bool is_zero(void *description, const void *beta)
{
    int32_t mode = 0;
    int32_t type = -1;

    if (!ask(description, MATMUL_POINTER_MODE, &mode, sizeof(mode)) || mode != 0 ||
        !ask(description, MATMUL_SCALE_TYPE, &type, sizeof(type)) || beta == NULL) {
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
        !ask(matmul->description, MATMUL_POINTER_MODE, &mode, sizeof(mode)) || mode != 0 ||
        has_other_pointers(matmul->description) ||
        !add_epilogue(operands, matmul->description, &d)) {
        return false;
    }
    keeps = !is_zero(matmul->description, matmul->beta);
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
