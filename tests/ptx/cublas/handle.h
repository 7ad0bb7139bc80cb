/* The state of a cuBLAS handle. */
#ifndef CAPU_TESTS_PTX_CUBLAS_HANDLE_H
#define CAPU_TESTS_PTX_CUBLAS_HANDLE_H

#include "tests/ptx/cublas/blas.h"

struct cublasContext {
    CUstream stream;
    cublasMath_t math_mode;
    cublasPointerMode_t pointer_mode;
    CUdeviceptr own_workspace; /* allocated through the driver, as NVIDIA's library does */
    void *workspace;           /* what is used: its own or the program's */
    size_t workspace_bytes;
    bool is_opened; /* its own workspace was allocated, or there was no room */
};

/* Allocates the handle's own workspace, if it has not been tried. */
void handle_open_workspace(cublasHandle_t handle);

#endif
