/*
 * The functions that are exported under the names of cuBLAS. A program that is linked with the
 * library reaches these first, since this library is preloaded. Calls between cuBLAS and cuBLASLt
 * come here, too, and are left alone.
 */
#include "shim/core/core.h"
#include "shim/libraries/blas.h"

#define EXPORT(name, parameters, arguments)                                      \
    DRIVER_EXPORT cublasStatus_t name parameters;                                \
    cublasStatus_t name parameters                                               \
    {                                                                            \
        return core_takes(CALLER_PROGRAM, false) ? on_##name arguments           \
                                                 : blas_calls()->name arguments; \
    }

BLAS_WRAPPED(EXPORT)
