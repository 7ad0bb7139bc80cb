/* The types and calls of the driver that the cuda device uses, see fake_cuda_calls.h. */
#ifndef CAPU_TESTS_FAKE_CUDA_H
#define CAPU_TESTS_FAKE_CUDA_H

#include "fake_cuda_calls.h"

#include <stddef.h>
#include <stdint.h>

#define FAKE_CUDA_ENUMERATOR(name, value) name = value,
typedef enum { FAKE_DRIVER_ERRORS(FAKE_CUDA_ENUMERATOR) } CUresult;
typedef enum { FAKE_DRIVER_LOCATION_TYPES(FAKE_CUDA_ENUMERATOR) } CUmemLocationType;
typedef enum { FAKE_DRIVER_ALLOCATION_TYPES(FAKE_CUDA_ENUMERATOR) } CUmemAllocationType;
typedef enum { FAKE_DRIVER_HANDLE_TYPES(FAKE_CUDA_ENUMERATOR) } CUmemAllocationHandleType;
typedef enum { FAKE_DRIVER_ACCESS_FLAGS(FAKE_CUDA_ENUMERATOR) } CUmemAccess_flags;
typedef enum { FAKE_DRIVER_GRANULARITIES(FAKE_CUDA_ENUMERATOR) } CUmemAllocationGranularity_flags;
enum { FAKE_DRIVER_WAIT_FLAGS(FAKE_CUDA_ENUMERATOR) };

typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef uint32_t cuuint32_t;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;

typedef struct {
    CUmemLocationType type;
    int id;
} CUmemLocation;

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
FAKE_DRIVER_CONTEXT_CALLS(FAKE_DRIVER_DECLARATION)
FAKE_DRIVER_WAIT_CALLS(FAKE_DRIVER_DECLARATION)
#undef FAKE_DRIVER_DECLARATION

#endif
