/* Who calls: told by the address to which a call returns. */
#ifndef CAPU_SHIM_CALLER_H
#define CAPU_SHIM_CALLER_H

enum caller {
    CALLER_PROGRAM, /* the program and its libraries, the CUDA runtime among them */
    CALLER_LIBRARY, /* a library of CUDA with a runtime of its own: cuBLAS, cuDNN, NCCL, ... */
    CALLER_OWN,     /* libcapuchin's plug-in with the cuda device, and this library */
    CALLER_DRIVER   /* the real driver */
};

/* Thread: any. */
enum caller caller_of(const void *address);

#define CALLER() caller_of(__builtin_return_address(0))

#endif
