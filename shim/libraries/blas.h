/*
 * What the shim does in place of functions of cuBLAS: on_NAME has the parameters of NAME. Their
 * operands are exact. While the library's own function runs, its calls of the driver are left
 * alone.
 */
#ifndef CAPU_SHIM_BLAS_H
#define CAPU_SHIM_BLAS_H

#include "shim/core/operands.h"
#include "shim/graph/graph.h"
#include "shim/libraries/library_calls.h"

#define BLAS_HANDLER(name, parameters, arguments) cublasStatus_t on_##name parameters;
BLAS_WRAPPED(BLAS_HANDLER)
#undef BLAS_HANDLER

/* A call from begin to end. */
struct blas_call {
    const char *name;
    cublasStatus_t status; /* an error: the library is not called */
    struct operands operands;
    bool is_captured;
    struct graph_known_call captured; /* if it is */
};

/* Enters the core, for a call whose operands are then added. */
struct blas_call blas_enter(const char *name);

/* Begins an access of the operands and of the handle's workspace. If the handle's stream captures,
   what the call adds to the graph is noted instead. False: there is no access, and the core was
   left. Then the library is called. */
bool blas_begin(struct blas_call *call, cublasHandle_t handle);

/* The same for a call that is given a stream of the program. */
bool blas_begin_on(struct blas_call *call, CUstream stream);

/* Ends the access and leaves the core. What the call returns: the library's answer, or an error. */
cublasStatus_t blas_end(const struct blas_call *call, cublasStatus_t status);

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
