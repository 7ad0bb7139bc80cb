/*
 * The functions of CUDA's libraries that the shim wraps or calls, as lists, and their types as far
 * as they are used. The tests of tests/shim/headers compare them with NVIDIA's headers where those
 * are installed. Handles and descriptions are opaque here.
 */
#ifndef CAPU_SHIM_LIBRARY_CALLS_H
#define CAPU_SHIM_LIBRARY_CALLS_H

#include "shim/driver/driver.h"

/* cuBLAS and cuBLASLt. */

typedef unsigned cublasStatus_t;
typedef struct cublasContext *cublasHandle_t;
typedef void *cublasLtHandle;
typedef uint16_t __half; /* its bits */

enum blas_status {
    BLAS_SUCCESS = 0,
    BLAS_NOT_INITIALIZED = 1,
    BLAS_ALLOC_FAILED = 3,
    BLAS_EXECUTION_FAILED = 13,
    BLAS_NOT_SUPPORTED = 15
};

enum { BLAS_NO_TRANSPOSE = 0 };
enum { BLAS_POINTERS_ON_HOST = 0 };

/* X(symbol, parameters, arguments): wrapped. For elements of type T, P and L are the letters in the
   names: S and s for float, D and d for double. */
#define BLAS_VECTORS(X, P, L, T)                                                                 \
    X(cublas##P##scal_v2, (cublasHandle_t handle, int n, const T *alpha, T *x, int step_x),      \
      (handle, n, alpha, x, step_x))                                                             \
    X(cublas##P##axpy_v2,                                                                        \
      (cublasHandle_t handle, int n, const T *alpha, const T *x, int step_x, T *y, int step_y),  \
      (handle, n, alpha, x, step_x, y, step_y))                                                  \
    X(cublas##P##copy_v2,                                                                        \
      (cublasHandle_t handle, int n, const T *x, int step_x, T *y, int step_y),                  \
      (handle, n, x, step_x, y, step_y))                                                         \
    X(cublas##P##swap_v2, (cublasHandle_t handle, int n, T *x, int step_x, T *y, int step_y),    \
      (handle, n, x, step_x, y, step_y))                                                         \
    X(cublas##P##dot_v2,                                                                         \
      (cublasHandle_t handle, int n, const T *x, int step_x, const T *y, int step_y, T *result), \
      (handle, n, x, step_x, y, step_y, result))                                                 \
    X(cublas##P##nrm2_v2, (cublasHandle_t handle, int n, const T *x, int step_x, T *result),     \
      (handle, n, x, step_x, result))                                                            \
    X(cublas##P##asum_v2, (cublasHandle_t handle, int n, const T *x, int step_x, T *result),     \
      (handle, n, x, step_x, result))                                                            \
    X(cublasI##L##amax_v2, (cublasHandle_t handle, int n, const T *x, int step_x, int *result),  \
      (handle, n, x, step_x, result))                                                            \
    X(cublasI##L##amin_v2, (cublasHandle_t handle, int n, const T *x, int step_x, int *result),  \
      (handle, n, x, step_x, result))                                                            \
    X(cublas##P##gemv_v2,                                                                        \
      (cublasHandle_t handle, unsigned transpose, int m, int n, const T *alpha, const T *a,      \
       int lda, const T *x, int step_x, const T *beta, T *y, int step_y),                        \
      (handle, transpose, m, n, alpha, a, lda, x, step_x, beta, y, step_y))                      \
    X(cublas##P##ger_v2,                                                                         \
      (cublasHandle_t handle, int m, int n, const T *alpha, const T *x, int step_x, const T *y,  \
       int step_y, T *a, int lda),                                                               \
      (handle, m, n, alpha, x, step_x, y, step_y, a, lda))                                       \
    X(cublas##P##geam,                                                                           \
      (cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n,          \
       const T *alpha, const T *a, int lda, const T *beta, const T *b, int ldb, T *c, int ldc),  \
      (handle, transpose_a, transpose_b, m, n, alpha, a, lda, beta, b, ldb, c, ldc))
/* Products of matrices; V is how the name of the plain one ends. */
#define BLAS_GEMMS(X, P, V, T)                                                                     \
    X(cublas##P##gemm##V,                                                                          \
      (cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k,     \
       const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc),    \
      (handle, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc))            \
    X(cublas##P##gemmStridedBatched,                                                               \
      (cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k,     \
       const T *alpha, const T *a, int lda, long long stride_a, const T *b, int ldb,               \
       long long stride_b, const T *beta, T *c, int ldc, long long stride_c, int count),           \
      (handle, transpose_a, transpose_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, \
       c, ldc, stride_c, count))
#define BLAS_WRAPPED(X)          \
    BLAS_PRODUCTS(X)             \
    BLAS_TYPED_PRODUCTS(X)       \
    BLAS_VECTORS(X, S, s, float) \
    BLAS_VECTORS(X, D, d, double)
#define BLAS_PRODUCTS(X)                                                                           \
    X(cublasCreate_v2, (cublasHandle_t * handle), (handle))                                        \
    X(cublasDestroy_v2, (cublasHandle_t handle), (handle))                                         \
    X(cublasSetStream_v2, (cublasHandle_t handle, CUstream stream), (handle, stream))              \
    X(cublasGetStream_v2, (cublasHandle_t handle, CUstream * stream), (handle, stream))            \
    X(cublasSetWorkspace_v2, (cublasHandle_t handle, void *workspace, size_t bytes),               \
      (handle, workspace, bytes))                                                                  \
    BLAS_GEMMS(X, S, _v2, float)                                                                   \
    BLAS_GEMMS(X, D, _v2, double)                                                                  \
    BLAS_GEMMS(X, H, , __half)                                                                     \
    X(cublasSgemmEx,                                                                               \
      (cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k,     \
       const float *alpha, const void *a, unsigned type_a, int lda, const void *b,                 \
       unsigned type_b, int ldb, const float *beta, void *c, unsigned type_c, int ldc),            \
      (handle, transpose_a, transpose_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,  \
       type_c, ldc))                                                                               \
    X(cublasLtMatmul,                                                                              \
      (cublasLtHandle handle, void *description, const void *alpha, const void *a, void *layout_a, \
       const void *b, void *layout_b, const void *beta, const void *c, void *layout_c, void *d,    \
       void *layout_d, const void *algorithm, void *workspace, size_t workspace_bytes,             \
       CUstream stream),                                                                           \
      (handle, description, alpha, a, layout_a, b, layout_b, beta, c, layout_c, d, layout_d,       \
       algorithm, workspace, workspace_bytes, stream))

/* Matrices of any type. */
#define BLAS_TYPED_PRODUCTS(X)                                                                     \
    X(cublasGemmEx,                                                                                \
      (cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k,     \
       const void *alpha, const void *a, unsigned type_a, int lda, const void *b, unsigned type_b, \
       int ldb, const void *beta, void *c, unsigned type_c, int ldc, unsigned compute,             \
       int algorithm),                                                                             \
      (handle, transpose_a, transpose_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,  \
       type_c, ldc, compute, algorithm))                                                           \
    X(cublasGemmStridedBatchedEx,                                                                  \
      (cublasHandle_t handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k,     \
       const void *alpha, const void *a, unsigned type_a, int lda, long long stride_a,             \
       const void *b, unsigned type_b, int ldb, long long stride_b, const void *beta, void *c,     \
       unsigned type_c, int ldc, long long stride_c, int count, unsigned compute, int algorithm),  \
      (handle, transpose_a, transpose_b, m, n, k, alpha, a, type_a, lda, stride_a, b, type_b, ldb, \
       stride_b, beta, c, type_c, ldc, stride_c, count, compute, algorithm))

/* X(symbol, parameters): called, but not wrapped. */
#define BLAS_CALLED(X)                                                       \
    X(cublasGetPointerMode_v2, (cublasHandle_t handle, unsigned *mode))      \
    X(cublasLtMatrixLayoutGetAttribute,                                      \
      (void *layout, int attribute, void *value, size_t bytes, size_t *got)) \
    X(cublasLtMatmulDescGetAttribute,                                        \
      (void *description, int attribute, void *value, size_t bytes, size_t *got))

/* The library's functions, found after this library in the order of the loader; NULL: it is not
   loaded in that way. Thread: any. */
#define BLAS_MEMBER(name, parameters) cublasStatus_t(*name) parameters;
#define BLAS_MEMBER_WRAPPED(name, parameters, arguments) BLAS_MEMBER(name, parameters)
struct blas_calls {
    BLAS_WRAPPED(BLAS_MEMBER_WRAPPED)
    BLAS_CALLED(BLAS_MEMBER)
};
#undef BLAS_MEMBER
#undef BLAS_MEMBER_WRAPPED
const struct blas_calls *blas_calls(void);

/* cuRAND. */

typedef unsigned curandStatus_t;
typedef struct curandGenerator_st *curandGenerator_t;

enum rand_status {
    RAND_SUCCESS = 0,
    RAND_NOT_INITIALIZED = 101,
    RAND_ALLOCATION_FAILED = 102,
    RAND_LAUNCH_FAILURE = 201
};

/* X(symbol, parameters, arguments): calls that may launch kernels, which touch memory of the
   library's own. */
#define RAND_PLAIN(X)                                                                             \
    X(curandDestroyGenerator, (curandGenerator_t generator), (generator))                         \
    X(curandGenerateSeeds, (curandGenerator_t generator), (generator))                            \
    X(curandSetPseudoRandomGeneratorSeed, (curandGenerator_t generator, unsigned long long seed), \
      (generator, seed))                                                                          \
    X(curandSetGeneratorOffset, (curandGenerator_t generator, unsigned long long offset),         \
      (generator, offset))

/* X(symbol, type of a number, parameters, arguments): fills an array. */
#define RAND_FILLING(X)                                                                            \
    X(curandGenerate, unsigned, (curandGenerator_t generator, unsigned *numbers, size_t count),    \
      (generator, numbers, count))                                                                 \
    X(curandGenerateLongLong, unsigned long long,                                                  \
      (curandGenerator_t generator, unsigned long long *numbers, size_t count),                    \
      (generator, numbers, count))                                                                 \
    X(curandGenerateUniform, float, (curandGenerator_t generator, float *numbers, size_t count),   \
      (generator, numbers, count))                                                                 \
    X(curandGenerateUniformDouble, double,                                                         \
      (curandGenerator_t generator, double *numbers, size_t count), (generator, numbers, count))   \
    X(curandGenerateNormal, float,                                                                 \
      (curandGenerator_t generator, float *numbers, size_t count, float mean, float deviation),    \
      (generator, numbers, count, mean, deviation))                                                \
    X(curandGenerateNormalDouble, double,                                                          \
      (curandGenerator_t generator, double *numbers, size_t count, double mean, double deviation), \
      (generator, numbers, count, mean, deviation))                                                \
    X(curandGenerateLogNormal, float,                                                              \
      (curandGenerator_t generator, float *numbers, size_t count, float mean, float deviation),    \
      (generator, numbers, count, mean, deviation))                                                \
    X(curandGenerateLogNormalDouble, double,                                                       \
      (curandGenerator_t generator, double *numbers, size_t count, double mean, double deviation), \
      (generator, numbers, count, mean, deviation))                                                \
    X(curandGeneratePoisson, unsigned,                                                             \
      (curandGenerator_t generator, unsigned *numbers, size_t count, double lambda),               \
      (generator, numbers, count, lambda))

/* X(symbol, parameters): the others. */
#define RAND_OTHER(X)                                                        \
    X(curandCreateGenerator, (curandGenerator_t * generator, unsigned type)) \
    X(curandSetStream, (curandGenerator_t generator, CUstream stream))

/* NCCL. */

typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;

enum nccl_result { NCCL_SYSTEM_ERROR = 2, NCCL_INVALID_USAGE = 5 };

/* X(symbol, parameters, arguments, ranks) */
#define NCCL_CALLS(X)                                                                              \
    X(ncclCommInitRank, (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank),                 \
      (comm, ranks, id, rank), ranks)                                                              \
    X(ncclCommInitRankConfig,                                                                      \
      (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank, void *config),                     \
      (comm, ranks, id, rank, config), ranks)                                                      \
    X(ncclCommInitRankScalable,                                                                    \
      (ncclComm_t * comm, int ranks, int rank, int ids, ncclUniqueId *list, void *config),         \
      (comm, ranks, rank, ids, list, config), ranks)                                               \
    X(ncclCommInitAll, (ncclComm_t * comms, int devices, const int *list), (comms, devices, list), \
      devices)

#endif
