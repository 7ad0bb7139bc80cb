/* Functions of loaded modules, shared by module.c, function.c and launch.c. */
#ifndef CAPU_TESTS_PTX_DRIVER_CODE_H
#define CAPU_TESTS_PTX_DRIVER_CODE_H

#include "tests/ptx/driver/driver.h"
#include "tests/ptx/machine/machine.h"

/* First word of what a CUfunction and a CUkernel point to, since either is passed for the other. */
enum { FUNCTION_MAGIC = 0x46756e63, KERNEL_MAGIC = 0x4b65726e };

/* Shared memory of a block: what a kernel may have unless it asks for more, and the most. */
enum { SHARED_BYTES_DEFAULT = 48 << 10, SHARED_BYTES_MOST = 227 << 10 };

struct CUfunc_st {
    uint32_t magic;
    const struct machine_function *machine;
    CUmodule module;
    uint32_t dynamic_bytes_most; /* of shared memory */
};

/* The function of a handle, which may also be that of a kernel. NULL: it is neither. */
struct CUfunc_st *function_of(CUfunction handle);

#endif
