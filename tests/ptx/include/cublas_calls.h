/*
 * The calls of cuBLAS and cuBLASLt that the libraries of these tests have, as lists. The names are
 * NVIDIA's, since this is their interface; headers_check.c compares them with its headers where
 * those are installed.
 */
#ifndef CAPU_TESTS_PTX_CUBLAS_CALLS_H
#define CAPU_TESTS_PTX_CUBLAS_CALLS_H

/* X(name, parameters) */
#define CUBLAS_CALLS(X)                                                                            \
    X(cublasCreate_v2, (cublasHandle_t * handle))                                                  \
    X(cublasDestroy_v2, (cublasHandle_t handle))                                                   \
    X(cublasGetVersion_v2, (cublasHandle_t handle, int *version))                                  \
    X(cublasSetStream_v2, (cublasHandle_t handle, cudaStream_t stream))                            \
    X(cublasGetStream_v2, (cublasHandle_t handle, cudaStream_t * stream))                          \
    X(cublasSetMathMode, (cublasHandle_t handle, cublasMath_t mode))                               \
    X(cublasGetMathMode, (cublasHandle_t handle, cublasMath_t * mode))                             \
    X(cublasSetPointerMode_v2, (cublasHandle_t handle, cublasPointerMode_t mode))                  \
    X(cublasGetPointerMode_v2, (cublasHandle_t handle, cublasPointerMode_t * mode))                \
    X(cublasSetAtomicsMode, (cublasHandle_t handle, cublasAtomicsMode_t mode))                     \
    X(cublasSetWorkspace_v2, (cublasHandle_t handle, void *workspace, size_t bytes))               \
    X(cublasSgemm_v2, (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,  \
                       int m, int n, int k, const float *alpha, const float *a, int lda,           \
                       const float *b, int ldb, const float *beta, float *c, int ldc))             \
    X(cublasDgemm_v2, (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,  \
                       int m, int n, int k, const double *alpha, const double *a, int lda,         \
                       const double *b, int ldb, const double *beta, double *c, int ldc))          \
    X(cublasSgemmStridedBatched,                                                                   \
      (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,    \
       int k, const float *alpha, const float *a, int lda, long long int a_stride, const float *b, \
       int ldb, long long int b_stride, const float *beta, float *c, int ldc,                      \
       long long int c_stride, int count))                                                         \
    X(cublasDgemmStridedBatched,                                                                   \
      (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,    \
       int k, const double *alpha, const double *a, int lda, long long int a_stride,               \
       const double *b, int ldb, long long int b_stride, const double *beta, double *c, int ldc,   \
       long long int c_stride, int count))                                                         \
    X(cublasHgemm, (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,     \
                    int m, int n, int k, const __half *alpha, const __half *a, int lda,            \
                    const __half *b, int ldb, const __half *beta, __half *c, int ldc))             \
    X(cublasHgemmStridedBatched,                                                                   \
      (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,    \
       int k, const __half *alpha, const __half *a, int lda, long long int a_stride,               \
       const __half *b, int ldb, long long int b_stride, const __half *beta, __half *c, int ldc,   \
       long long int c_stride, int count))                                                         \
    X(cublasSgemmEx,                                                                               \
      (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,    \
       int k, const float *alpha, const void *a, cudaDataType a_type, int lda, const void *b,      \
       cudaDataType b_type, int ldb, const float *beta, void *c, cudaDataType c_type, int ldc))    \
    X(cublasSgemmBatched,                                                                          \
      (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,    \
       int k, const float *alpha, const float *const a[], int lda, const float *const b[],         \
       int ldb, const float *beta, float *const c[], int ldc, int count))                          \
    X(cublasHgemmBatched,                                                                          \
      (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,    \
       int k, const __half *alpha, const __half *const a[], int lda, const __half *const b[],      \
       int ldb, const __half *beta, __half *const c[], int ldc, int count))                        \
    X(cublasGemmBatchedEx,                                                                         \
      (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,    \
       int k, const void *alpha, const void *const a[], cudaDataType a_type, int lda,              \
       const void *const b[], cudaDataType b_type, int ldb, const void *beta, void *const c[],     \
       cudaDataType c_type, int ldc, int count, cublasComputeType_t compute,                       \
       cublasGemmAlgo_t algorithm))                                                                \
    X(cublasGemmEx,                                                                                \
      (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,    \
       int k, const void *alpha, const void *a, cudaDataType a_type, int lda, const void *b,       \
       cudaDataType b_type, int ldb, const void *beta, void *c, cudaDataType c_type, int ldc,      \
       cublasComputeType_t compute, cublasGemmAlgo_t algorithm))                                   \
    X(cublasGemmStridedBatchedEx,                                                                  \
      (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,    \
       int k, const void *alpha, const void *a, cudaDataType a_type, int lda,                      \
       long long int a_stride, const void *b, cudaDataType b_type, int ldb,                        \
       long long int b_stride, const void *beta, void *c, cudaDataType c_type, int ldc,            \
       long long int c_stride, int count, cublasComputeType_t compute,                             \
       cublasGemmAlgo_t algorithm))                                                                \
    X(cublasGemmEx_64,                                                                             \
      (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m,       \
       int64_t n, int64_t k, const void *alpha, const void *a, cudaDataType a_type, int64_t lda,   \
       const void *b, cudaDataType b_type, int64_t ldb, const void *beta, void *c,                 \
       cudaDataType c_type, int64_t ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)) \
    X(cublasGemmStridedBatchedEx_64,                                                               \
      (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m,       \
       int64_t n, int64_t k, const void *alpha, const void *a, cudaDataType a_type, int64_t lda,   \
       long long int a_stride, const void *b, cudaDataType b_type, int64_t ldb,                    \
       long long int b_stride, const void *beta, void *c, cudaDataType c_type, int64_t ldc,        \
       long long int c_stride, int64_t count, cublasComputeType_t compute,                         \
       cublasGemmAlgo_t algorithm))                                                                \
    X(cublasSetVector, (int n, int element_bytes, const void *x, int x_step, void *y, int y_step)) \
    X(cublasGetVector, (int n, int element_bytes, const void *x, int x_step, void *y, int y_step)) \
    X(cublasSetMatrix,                                                                             \
      (int rows, int columns, int element_bytes, const void *a, int lda, void *b, int ldb))        \
    X(cublasGetMatrix,                                                                             \
      (int rows, int columns, int element_bytes, const void *a, int lda, void *b, int ldb))        \
    X(cublasSgemv_v2, (cublasHandle_t handle, cublasOperation_t trans, int m, int n,               \
                       const float *alpha, const float *a, int lda, const float *x, int x_step,    \
                       const float *beta, float *y, int y_step))                                   \
    X(cublasSscal_v2, (cublasHandle_t handle, int n, const float *alpha, float *x, int x_step))    \
    X(cublasSaxpy_v2, (cublasHandle_t handle, int n, const float *alpha, const float *x,           \
                       int x_step, float *y, int y_step))                                          \
    X(cublasScopy_v2,                                                                              \
      (cublasHandle_t handle, int n, const float *x, int x_step, float *y, int y_step))            \
    X(cublasSswap_v2, (cublasHandle_t handle, int n, float *x, int x_step, float *y, int y_step))  \
    X(cublasSrot_v2, (cublasHandle_t handle, int n, float *x, int x_step, float *y, int y_step,    \
                      const float *cosine, const float *sine))                                     \
    X(cublasSger_v2, (cublasHandle_t handle, int m, int n, const float *alpha, const float *x,     \
                      int x_step, const float *y, int y_step, float *a, int lda))                  \
    X(cublasSgeam, (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,     \
                    int m, int n, const float *alpha, const float *a, int lda, const float *beta,  \
                    const float *b, int ldb, float *c, int ldc))                                   \
    X(cublasIsamax_v2, (cublasHandle_t handle, int n, const float *x, int x_step, int *result))    \
    X(cublasSdot_v2, (cublasHandle_t handle, int n, const float *x, int x_step, const float *y,    \
                      int y_step, float *result))                                                  \
    X(cublasSnrm2_v2, (cublasHandle_t handle, int n, const float *x, int x_step, float *result))   \
    X(cublasSasum_v2, (cublasHandle_t handle, int n, const float *x, int x_step, float *result))

/* The same of cuBLASLt. */
#define CUBLASLT_CALLS(X)                                                                       \
    X(cublasLtCreate, (cublasLtHandle_t * handle))                                              \
    X(cublasLtDestroy, (cublasLtHandle_t handle))                                               \
    X(cublasLtMatrixLayoutCreate, (cublasLtMatrixLayout_t * layout, cudaDataType type,          \
                                   uint64_t rows, uint64_t columns, int64_t ld))                \
    X(cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout))                             \
    X(cublasLtMatrixLayoutSetAttribute,                                                         \
      (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,                \
       const void *value, size_t bytes))                                                        \
    X(cublasLtMatrixLayoutGetAttribute,                                                         \
      (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, void *value,   \
       size_t bytes, size_t *written))                                                          \
    X(cublasLtMatmulDescCreate,                                                                 \
      (cublasLtMatmulDesc_t * description, cublasComputeType_t compute, cudaDataType_t scale))  \
    X(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t description))                            \
    X(cublasLtMatmulDescSetAttribute,                                                           \
      (cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,              \
       const void *value, size_t bytes))                                                        \
    X(cublasLtMatmulDescGetAttribute,                                                           \
      (cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, void *value, \
       size_t bytes, size_t *written))                                                          \
    X(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference))                \
    X(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference))                 \
    X(cublasLtMatmulPreferenceSetAttribute,                                                     \
      (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,   \
       const void *value, size_t bytes))                                                        \
    X(cublasLtMatmulAlgoGetHeuristic,                                                           \
      (cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,     \
       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,            \
       cublasLtMatmulPreference_t preference, int wanted,                                       \
       cublasLtMatmulHeuristicResult_t results[], int *count))                                  \
    X(cublasLtMatmul, (cublasLtHandle_t handle, cublasLtMatmulDesc_t description,               \
                       const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,       \
                       const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,        \
                       const void *c, cublasLtMatrixLayout_t c_layout, void *d,                 \
                       cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algorithm,  \
                       void *workspace, size_t workspace_bytes, cudaStream_t stream))

/* X(name, number) */
#define CUBLAS_COMPUTE_TYPES(X)         \
    X(CUBLAS_COMPUTE_16F, 64)           \
    X(CUBLAS_COMPUTE_32F, 68)           \
    X(CUBLAS_COMPUTE_32F_PEDANTIC, 69)  \
    X(CUBLAS_COMPUTE_64F, 70)           \
    X(CUBLAS_COMPUTE_32F_FAST_16F, 74)  \
    X(CUBLAS_COMPUTE_32F_FAST_16BF, 75) \
    X(CUBLAS_COMPUTE_32F_FAST_TF32, 77)
#define CUBLAS_VALUES(X)                                    \
    X(CUBLAS_STATUS_SUCCESS, 0)                             \
    X(CUBLAS_STATUS_NOT_INITIALIZED, 1)                     \
    X(CUBLAS_STATUS_ALLOC_FAILED, 3)                        \
    X(CUBLAS_STATUS_INVALID_VALUE, 7)                       \
    X(CUBLAS_STATUS_EXECUTION_FAILED, 13)                   \
    X(CUBLAS_STATUS_INTERNAL_ERROR, 14)                     \
    X(CUBLAS_STATUS_NOT_SUPPORTED, 15)                      \
    X(CUBLAS_OP_N, 0)                                       \
    X(CUBLAS_OP_T, 1)                                       \
    X(CUBLAS_OP_C, 2)                                       \
    X(CUBLAS_ATOMICS_NOT_ALLOWED, 0)                        \
    X(CUBLAS_ATOMICS_ALLOWED, 1)                            \
    X(CUBLAS_GEMM_DEFAULT, -1)                              \
    X(CUBLAS_DEFAULT_MATH, 0)                               \
    X(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, 16) \
    X(CUBLAS_POINTER_MODE_HOST, 0)                          \
    X(CUBLAS_POINTER_MODE_DEVICE, 1)                        \
    X(CUDA_R_32F, 0)                                        \
    X(CUDA_R_64F, 1)                                        \
    X(CUDA_R_16F, 2)                                        \
    X(CUDA_R_16BF, 14)                                      \
    X(CUBLASLT_MATRIX_LAYOUT_TYPE, 0)                       \
    X(CUBLASLT_MATRIX_LAYOUT_ORDER, 1)                      \
    X(CUBLASLT_MATRIX_LAYOUT_ROWS, 2)                       \
    X(CUBLASLT_MATRIX_LAYOUT_COLS, 3)                       \
    X(CUBLASLT_MATRIX_LAYOUT_LD, 4)                         \
    X(CUBLASLT_ORDER_COL, 0)                                \
    X(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, 0)                 \
    X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)                \
    X(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6)       \
    X(CUBLASLT_MATMUL_DESC_SCALE_TYPE, 1)                   \
    X(CUBLASLT_MATMUL_DESC_POINTER_MODE, 2)                 \
    X(CUBLASLT_MATMUL_DESC_TRANSA, 3)                       \
    X(CUBLASLT_MATMUL_DESC_TRANSB, 4)                       \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                     \
    X(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)                 \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 11)        \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 12)             \
    X(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 26)              \
    X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)          \
    X(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)        \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)        \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)        \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)        \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)        \
    X(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2)            \
    X(CUBLASLT_REDUCTION_SCHEME_MASK, 7)                    \
    X(CUBLASLT_EPILOGUE_DEFAULT, 1)                         \
    X(CUBLASLT_EPILOGUE_RELU, 2)                            \
    X(CUBLASLT_EPILOGUE_BIAS, 4)                            \
    X(CUBLASLT_EPILOGUE_GELU, 32)                           \
    X(CUBLASLT_EPILOGUE_GELU_AUX, 160)

#endif
