/* What operations on cuda need besides their operands: prepared before a stream's first one. */
#ifndef CAPU_KERNELS_BLAS_H
#define CAPU_KERNELS_BLAS_H

#include "capuchin/op.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Creates scratch memory for `stream`, on its device, and with `has_products` a cuBLAS handle,
 * unless it has them. Without products, cuBLAS is neither loaded nor needed. They
 * live until the process ends: nothing runs at exit. Later calls cost a look-up. Any thread, with
 * any current device.
 *
 * The scratch memory (BLAS_SCRATCH_BYTES of blas.cuh) is allocated from the device directly and
 * counts towards no budget. Errors: UNSUPPORTED (cuBLAS or cublasLt was not found), INVALID (the
 * value of KERNELS_MATMUL), both with products only; DEVICE_FAILED, NO_HOST_MEMORY.
 */
capu_status blas_prepare(capu_stream stream, bool has_products);

/*
 * Loads cuBLAS if it is not loaded. `text` receives the paths of libcublas and libcublasLt, or
 * which of them is missing and why: a program can say what it computes with. 512 bytes are enough
 * for either. Errors: UNSUPPORTED, INVALID, as blas_prepare.
 */
capu_status blas_find(char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif

#endif
