/*
 * What the shim does in place of functions of cuBLAS: on_NAME has the parameters of NAME. Their
 * operands are exact. While the library's own function runs, its calls of the driver are left
 * alone.
 */
#ifndef CAPU_SHIM_BLAS_H
#define CAPU_SHIM_BLAS_H

#include "shim/core/operands.h"
#include "shim/libraries/blas_calls.h"

#define BLAS_HANDLER(name, parameters, arguments) cublasStatus_t on_##name parameters;
BLAS_WRAPPED(BLAS_HANDLER)
#undef BLAS_HANDLER

/* For the thread that has entered the core: begins an access of what was added, with a handle's
   workspace, and ends it. If the handle's stream captures, what the call adds to the graph is noted
   instead. An error: there is no access. Between them the library is called. */
cublasStatus_t blas_begin(cublasHandle_t handle, struct operands *operands, const char *name);
cublasStatus_t blas_end(cublasStatus_t status, const char *name);

/* The same as blas_begin for a call that is given a stream of the program. */
cublasStatus_t blas_begin_on(CUstream stream, struct operands *operands, const char *name);

/* Streams may capture now that did not, or the other way round: handles follow them. Thread: any,
   not entered. */
void blas_follow(void);

/* cuBLAS's error for one of the driver. */
cublasStatus_t blas_status(CUresult result);

/* Bytes of an element of a cudaDataType; 0: not known. */
size_t blas_element_bytes(unsigned type);

/* Adds `count` matrices, `stride` elements apart, with columns of `rows` elements, `ld` apart. */
struct blas_matrix {
    const void *address;
    int64_t rows, columns, ld;
    int64_t stride, count;
    size_t element_bytes;
};
void blas_add_read(struct operands *operands, const struct blas_matrix *matrix);

/* Whether a call does something with it: it has elements, and the library accepts its shape. What a
   call that fails or does nothing would write keeps what it held. */
bool blas_is_used(const struct blas_matrix *matrix);

/* The same for one that is stored to. `keeps`: what it held counts. */
void blas_add_written(struct operands *operands, const struct blas_matrix *matrix, bool keeps);

#endif
