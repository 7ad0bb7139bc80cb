/*
 * Types and values of the CUDA driver's interface that the shim uses, written for it: nothing here
 * needs a toolkit. tests/shim/headers_check.c compares them with NVIDIA's where those are
 * installed. The names are the driver's.
 */
#ifndef CAPU_INTERPOSE_SHIM_DRIVER_H
#define CAPU_INTERPOSE_SHIM_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;

enum driver_result {
    DRIVER_SUCCESS = 0,
    DRIVER_INVALID_VALUE = 1,
    DRIVER_OUT_OF_MEMORY = 2,
    DRIVER_NOT_INITIALIZED = 3,
    DRIVER_NO_DEVICE = 100,
    DRIVER_INVALID_DEVICE = 101,
    DRIVER_NOT_FOUND = 500,
    DRIVER_NOT_SUPPORTED = 801,
};

/* Flags of cuGetProcAddress. */
enum { DRIVER_LEGACY_STREAM = 1, DRIVER_PER_THREAD_STREAM = 2 };

/* Functions of ours that the library exports under the driver's names. */
#define DRIVER_EXPORT __attribute__((visibility("default")))

#endif
