/* The driver as the cuda device sees it over the fake: the types and calls of tests/ptx/include,
   and those of fake_cuda_calls.h. */
#ifndef CAPU_TESTS_FAKE_CUDA_H
#define CAPU_TESTS_FAKE_CUDA_H

#include "fake_cuda_calls.h"
#include "tests/ptx/include/driver_types.h"

#define FAKE_CUDA_ENUMERATOR(name, value) name = (value),
enum { FAKE_DRIVER_VALUES(FAKE_CUDA_ENUMERATOR) };
#undef FAKE_CUDA_ENUMERATOR

typedef unsigned CUmemAllocationType;
typedef unsigned CUmemAllocationHandleType;
typedef unsigned CUmemAccess_flags;
typedef unsigned CUmemAllocationGranularity_flags;
typedef unsigned long long CUmemGenericAllocationHandle;

typedef struct {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct {
    CUmemLocation location;
    CUmemAccess_flags flags;
} CUmemAccessDesc;

#define FAKE_DRIVER_DECLARATION(name, parameters) CUresult name parameters;
FAKE_DRIVER_CALLS(FAKE_DRIVER_DECLARATION)
#undef FAKE_DRIVER_DECLARATION

#endif
