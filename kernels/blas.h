/* What cuda operations need besides their operands: made for a stream before its first one. */
#ifndef CAPU_KERNELS_BLAS_H
#define CAPU_KERNELS_BLAS_H

#include "capuchin/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a cuBLAS handle and scratch memory for `stream`, on its device, unless it has them already;
 * a call that finds them costs a look-up. They live until the process ends: nothing runs at exit.
 * Any thread, whatever device is current there.
 *
 * The scratch memory (BLAS_SCRATCH_BYTES of blas.cuh) is taken from the device directly: no budget
 * counts it. Errors: UNSUPPORTED (no cuBLAS is found), INVALID (KERNELS_MATMUL), DEVICE_FAILED,
 * NO_HOST_MEMORY.
 */
capu_status blas_prepare(capu_stream stream);

#ifdef __cplusplus
}
#endif

#endif
