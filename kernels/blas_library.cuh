/*
 * The functions of cuBLAS and cublasLt. They are loaded when the first stream with products is
 * prepared, so that programs start without them. libcublas depends on libcublasLt, so opening the
 * first one also loads the second one of the same version, and neither can be there alone.
 */
#ifndef CAPU_KERNELS_BLAS_LIBRARY_CUH
#define CAPU_KERNELS_BLAS_LIBRARY_CUH

#include "capuchin/status.h"

#include <cublasLt.h>
#include <cublas_v2.h>

/* Our names, and those in the libraries. */
#define BLAS_FUNCTIONS(X)                                     \
    X(create, cublasCreate_v2)                                \
    X(destroy, cublasDestroy_v2)                              \
    X(set_stream, cublasSetStream_v2)                         \
    X(set_workspace, cublasSetWorkspace_v2)                   \
    X(set_atomics, cublasSetAtomicsMode)                      \
    X(set_math, cublasSetMathMode)                            \
    X(multiply, cublasGemmEx_64)                              \
    X(multiply_many, cublasGemmStridedBatchedEx_64)           \
    X(lt_multiply, cublasLtMatmul)                            \
    X(lt_choose, cublasLtMatmulAlgoGetHeuristic)              \
    X(lt_product_create, cublasLtMatmulDescCreate)            \
    X(lt_product_destroy, cublasLtMatmulDescDestroy)          \
    X(lt_product_set, cublasLtMatmulDescSetAttribute)         \
    X(lt_layout_create, cublasLtMatrixLayoutCreate)           \
    X(lt_layout_destroy, cublasLtMatrixLayoutDestroy)         \
    X(lt_preference_create, cublasLtMatmulPreferenceCreate)   \
    X(lt_preference_destroy, cublasLtMatmulPreferenceDestroy) \
    X(lt_preference_set, cublasLtMatmulPreferenceSetAttribute)

struct blas_functions {
#define BLAS_FUNCTION(field, name) decltype(&name) field;
    BLAS_FUNCTIONS(BLAS_FUNCTION)
#undef BLAS_FUNCTION
};

#define BLAS_REASON_BYTES 512

/*
 * Loads the libraries and fills in all of *functions, or changes nothing and writes to `reason`, of
 * BLAS_REASON_BYTES, why not. Opens files, so call it once. Errors: UNSUPPORTED: there is no such
 * library, it cannot be loaded, or it lacks a function.
 */
capu_status blas_library_load(struct blas_functions *functions, char *reason);

#endif
