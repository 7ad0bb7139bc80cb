/* Kernels and variables that a program has registered, by the addresses that stand for them on the
   host. */
#ifndef CAPU_TESTS_PTX_CUDART_CODE_H
#define CAPU_TESTS_PTX_CUDART_CODE_H

#include "tests/ptx/cudart/cudart.h"

/* Each returns an error, for the caller to store. Pre: entered. */

/* The kernel of a registered host function; a kernel itself is returned as it is.
   InvalidDeviceFunction: neither. */
cudaError_t code_kernel(const void *function, CUkernel *kernel);
/* The variable of a registered host variable. InvalidSymbol: not registered. */
cudaError_t code_variable(const void *symbol, CUdeviceptr *address, size_t *bytes);

#endif
