/*
 * Operations of cuBLAS on vectors, and on a matrix and vectors, of floats or doubles. A result
 * without gaps is written as a whole if what it held does not count. Factors and results may be in
 * device memory, too.
 */
#include "shim/core/core.h"
#include "shim/libraries/blas.h"

struct call {
    struct blas_call blas;
    cublasHandle_t handle;
    bool needs_all;
    bool may_do_nothing; /* then what it would write keeps what it held */
    bool is_on_device;   /* where factors and results are */
};

/* Takes the lock. */
static struct call enter_call(cublasHandle_t handle, const char *name)
{
    struct call call = {.blas = blas_enter(name), .handle = handle};
    unsigned mode = BLAS_POINTERS_ON_HOST;

    if (call.blas.status == BLAS_SUCCESS) {
        call.needs_all = blas_calls()->cublasGetPointerMode_v2(handle, &mode) != BLAS_SUCCESS;
        call.is_on_device = mode != BLAS_POINTERS_ON_HOST;
    }
    return call;
}

static bool wants_operands(const struct call *call)
{
    return call->blas.status == BLAS_SUCCESS && !call->needs_all;
}

/* A factor or result. */
static void add_number(struct call *call, const void *number, size_t bytes, capu_role role)
{
    if (wants_operands(call) && call->is_on_device) {
        operands_add_range(&call->blas.operands, (uintptr_t)number, bytes, role);
    }
}

static void add_read(struct call *call, struct blas_matrix matrix)
{
    if (wants_operands(call)) {
        call->may_do_nothing |= !blas_is_used(&matrix);
        blas_add_read(&call->blas.operands, &matrix);
    }
}

/* Pre: all that is read was added. */
static void add_written(struct call *call, struct blas_matrix matrix, bool keeps)
{
    if (wants_operands(call)) {
        blas_add_written(&call->blas.operands, &matrix, keeps || call->may_do_nothing);
    }
}

/* Begins the access. False: the lock is given back if it was taken. */
static bool begin_call(struct call *call)
{
    if (call->blas.status == BLAS_SUCCESS && call->needs_all) {
        operands_add_all(&call->blas.operands);
    }
    return blas_begin(&call->blas, call->handle);
}

/* Columns of `rows` elements, `ld` apart. */
static struct blas_matrix matrix(const void *a, int rows, int columns, int ld, size_t bytes)
{
    return (struct blas_matrix){a, rows, columns, ld, 0, 1, bytes};
}

/* A negative step goes backwards through the same elements. */
static struct blas_matrix vector(const void *x, int n, int step, size_t bytes)
{
    if (step == 1 || step == -1) {
        return matrix(x, n, 1, n, bytes);
    }
    return (struct blas_matrix){x, 1, n, step < 0 ? -(int64_t)step : step, 0, 1, bytes};
}

/* A number that is computed from a vector. */
#define REDUCTION(name_, T, R)                                                                 \
    cublasStatus_t on_##name_(cublasHandle_t handle, int n, const T *x, int step_x, R *result) \
    {                                                                                          \
        struct call call = enter_call(handle, #name_);                                         \
                                                                                               \
        add_read(&call, vector(x, n, step_x, sizeof(T)));                                      \
        add_number(&call, result, sizeof(R), CAPU_WRITE);                                      \
        return begin_call(&call)                                                               \
                   ? blas_end(&call.blas, blas_calls()->name_(handle, n, x, step_x, result))   \
                   : call.blas.status;                                                         \
    }

#define FUNCTIONS(P, L, T)                                                                         \
    cublasStatus_t on_cublas##P##scal_v2(cublasHandle_t handle, int n, const T *alpha, T *x,       \
                                         int step_x)                                               \
    {                                                                                              \
        struct call call = enter_call(handle, "cublas" #P "scal");                                 \
                                                                                                   \
        add_number(&call, alpha, sizeof(T), CAPU_READ);                                            \
        add_written(&call, vector(x, n, step_x, sizeof(T)), true);                                 \
        return begin_call(&call)                                                                   \
                   ? blas_end(&call.blas,                                                          \
                              blas_calls()->cublas##P##scal_v2(handle, n, alpha, x, step_x))       \
                   : call.blas.status;                                                             \
    }                                                                                              \
                                                                                                   \
    cublasStatus_t on_cublas##P##axpy_v2(cublasHandle_t handle, int n, const T *alpha, const T *x, \
                                         int step_x, T *y, int step_y)                             \
    {                                                                                              \
        struct call call = enter_call(handle, "cublas" #P "axpy");                                 \
                                                                                                   \
        add_number(&call, alpha, sizeof(T), CAPU_READ);                                            \
        add_read(&call, vector(x, n, step_x, sizeof(T)));                                          \
        add_written(&call, vector(y, n, step_y, sizeof(T)), true);                                 \
        return begin_call(&call)                                                                   \
                   ? blas_end(&call.blas, blas_calls()->cublas##P##axpy_v2(handle, n, alpha, x,    \
                                                                           step_x, y, step_y))     \
                   : call.blas.status;                                                             \
    }                                                                                              \
                                                                                                   \
    cublasStatus_t on_cublas##P##copy_v2(cublasHandle_t handle, int n, const T *x, int step_x,     \
                                         T *y, int step_y)                                         \
    {                                                                                              \
        struct call call = enter_call(handle, "cublas" #P "copy");                                 \
                                                                                                   \
        add_read(&call, vector(x, n, step_x, sizeof(T)));                                          \
        add_written(&call, vector(y, n, step_y, sizeof(T)), false);                                \
        return begin_call(&call)                                                                   \
                   ? blas_end(&call.blas,                                                          \
                              blas_calls()->cublas##P##copy_v2(handle, n, x, step_x, y, step_y))   \
                   : call.blas.status;                                                             \
    }                                                                                              \
                                                                                                   \
    cublasStatus_t on_cublas##P##swap_v2(cublasHandle_t handle, int n, T *x, int step_x, T *y,     \
                                         int step_y)                                               \
    {                                                                                              \
        struct call call = enter_call(handle, "cublas" #P "swap");                                 \
                                                                                                   \
        add_written(&call, vector(x, n, step_x, sizeof(T)), true);                                 \
        add_written(&call, vector(y, n, step_y, sizeof(T)), true);                                 \
        return begin_call(&call)                                                                   \
                   ? blas_end(&call.blas,                                                          \
                              blas_calls()->cublas##P##swap_v2(handle, n, x, step_x, y, step_y))   \
                   : call.blas.status;                                                             \
    }                                                                                              \
                                                                                                   \
    cublasStatus_t on_cublas##P##dot_v2(cublasHandle_t handle, int n, const T *x, int step_x,      \
                                        const T *y, int step_y, T *result)                         \
    {                                                                                              \
        struct call call = enter_call(handle, "cublas" #P "dot");                                  \
                                                                                                   \
        add_read(&call, vector(x, n, step_x, sizeof(T)));                                          \
        add_read(&call, vector(y, n, step_y, sizeof(T)));                                          \
        add_number(&call, result, sizeof(T), CAPU_WRITE);                                          \
        return begin_call(&call)                                                                   \
                   ? blas_end(&call.blas, blas_calls()->cublas##P##dot_v2(handle, n, x, step_x, y, \
                                                                          step_y, result))         \
                   : call.blas.status;                                                             \
    }                                                                                              \
                                                                                                   \
    REDUCTION(cublas##P##nrm2_v2, T, T)                                                            \
    REDUCTION(cublas##P##asum_v2, T, T)                                                            \
    REDUCTION(cublasI##L##amax_v2, T, int)                                                         \
    REDUCTION(cublasI##L##amin_v2, T, int)                                                         \
                                                                                                   \
    cublasStatus_t on_cublas##P##gemv_v2(cublasHandle_t handle, unsigned transpose, int m, int n,  \
                                         const T *alpha, const T *a, int lda, const T *x,          \
                                         int step_x, const T *beta, T *y, int step_y)              \
    {                                                                                              \
        struct call call = enter_call(handle, "cublas" #P "gemv");                                 \
        bool is_plain = transpose == BLAS_NO_TRANSPOSE;                                            \
        bool keeps = call.is_on_device || alpha == NULL || beta == NULL || *beta != 0;             \
                                                                                                   \
        add_number(&call, alpha, sizeof(T), CAPU_READ);                                            \
        add_number(&call, beta, sizeof(T), CAPU_READ);                                             \
        add_read(&call, matrix(a, m, n, lda, sizeof(T)));                                          \
        add_read(&call, vector(x, is_plain ? n : m, step_x, sizeof(T)));                           \
        add_written(&call, vector(y, is_plain ? m : n, step_y, sizeof(T)), keeps);                 \
        return begin_call(&call)                                                                   \
                   ? blas_end(&call.blas,                                                          \
                              blas_calls()->cublas##P##gemv_v2(handle, transpose, m, n, alpha, a,  \
                                                               lda, x, step_x, beta, y, step_y))   \
                   : call.blas.status;                                                             \
    }                                                                                              \
                                                                                                   \
    cublasStatus_t on_cublas##P##ger_v2(cublasHandle_t handle, int m, int n, const T *alpha,       \
                                        const T *x, int step_x, const T *y, int step_y, T *a,      \
                                        int lda)                                                   \
    {                                                                                              \
        struct call call = enter_call(handle, "cublas" #P "ger");                                  \
                                                                                                   \
        add_number(&call, alpha, sizeof(T), CAPU_READ);                                            \
        add_read(&call, vector(x, m, step_x, sizeof(T)));                                          \
        add_read(&call, vector(y, n, step_y, sizeof(T)));                                          \
        add_written(&call, matrix(a, m, n, lda, sizeof(T)), true);                                 \
        return begin_call(&call)                                                                   \
                   ? blas_end(&call.blas, blas_calls()->cublas##P##ger_v2(                         \
                                              handle, m, n, alpha, x, step_x, y, step_y, a, lda))  \
                   : call.blas.status;                                                             \
    }                                                                                              \
                                                                                                   \
    cublasStatus_t on_cublas##P##geam(                                                             \
        cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n,           \
        const T *alpha, const T *a, int lda, const T *beta, const T *b, int ldb, T *c, int ldc)    \
    {                                                                                              \
        struct call call = enter_call(handle, "cublas" #P "geam");                                 \
        bool a_is_plain = transpose_a == BLAS_NO_TRANSPOSE;                                        \
        bool b_is_plain = transpose_b == BLAS_NO_TRANSPOSE;                                        \
                                                                                                   \
        add_number(&call, alpha, sizeof(T), CAPU_READ);                                            \
        add_number(&call, beta, sizeof(T), CAPU_READ);                                             \
        add_read(&call, matrix(a, a_is_plain ? m : n, a_is_plain ? n : m, lda, sizeof(T)));        \
        add_read(&call, matrix(b, b_is_plain ? m : n, b_is_plain ? n : m, ldb, sizeof(T)));        \
        add_written(&call, matrix(c, m, n, ldc, sizeof(T)), false);                                \
        return begin_call(&call)                                                                   \
                   ? blas_end(&call.blas, blas_calls()->cublas##P##geam(                           \
                                              handle, transpose_a, transpose_b, m, n, alpha, a,    \
                                              lda, beta, b, ldb, c, ldc))                          \
                   : call.blas.status;                                                             \
    }

FUNCTIONS(S, s, float)
FUNCTIONS(D, d, double)
