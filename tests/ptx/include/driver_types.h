/* The types of CUDA's driver, as far as the calls in driver_calls.h use them. Enumerations are
   plain numbers; those that matter here are listed in driver_values.h. */
#ifndef CAPU_TESTS_PTX_DRIVER_TYPES_H
#define CAPU_TESTS_PTX_DRIVER_TYPES_H

#include "tests/ptx/include/driver_calls.h"
#include "tests/ptx/include/driver_values.h"

#include <stddef.h>
#include <stdint.h>

#define DRIVER_ENUMERATOR(name, runtime_name, number, text) name = number,
typedef enum { DRIVER_ERRORS(DRIVER_ENUMERATOR) } CUresult;
#undef DRIVER_ENUMERATOR

#define DRIVER_ENUMERATOR(name, number) name = (number),
enum { DRIVER_ATTRIBUTES(DRIVER_ENUMERATOR) };
#undef DRIVER_ENUMERATOR

#define CU_LAUNCH_PARAM_END ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUarray_st *CUarray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct {
    char bytes[16];
} CUuuid;

typedef unsigned CUdevice_attribute;
typedef unsigned CUpointer_attribute;
typedef unsigned CUfunction_attribute;
typedef unsigned CUmemorytype;
typedef unsigned CUlimit;
typedef unsigned CUfunc_cache;
typedef unsigned CUjit_option;
typedef unsigned CUlibraryOption;
typedef unsigned CUmoduleLoadingMode;
typedef unsigned CUfunctionLoadingState;
typedef unsigned CUmemPool_attribute;
typedef struct CUmemPoolProps_st {
    int allocType;
    int handleTypes;
    struct {
        int type;
        int id;
    } location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;
typedef unsigned CUmem_advise;
typedef unsigned CUgraphNodeType;
typedef unsigned CUgraphExecUpdateResult;
typedef unsigned CUstreamCaptureMode;
typedef unsigned CUstreamCaptureStatus;
typedef unsigned CUdriverProcAddressQueryResult;
typedef void (*CUhostFn)(void *argument);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *argument);
typedef size_t (*CUoccupancyB2DSize)(int threads);

typedef struct {
    size_t srcXInBytes;
    size_t srcY;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t srcPitch;
    size_t dstXInBytes;
    size_t dstY;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t dstPitch;
    size_t WidthInBytes;
    size_t Height;
} CUDA_MEMCPY2D;

typedef struct {
    size_t srcXInBytes;
    size_t srcY;
    size_t srcZ;
    size_t srcLOD;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void *reserved0;
    size_t srcPitch;
    size_t srcHeight;
    size_t dstXInBytes;
    size_t dstY;
    size_t dstZ;
    size_t dstLOD;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void *reserved1;
    size_t dstPitch;
    size_t dstHeight;
    size_t WidthInBytes;
    size_t Height;
    size_t Depth;
} CUDA_MEMCPY3D;

typedef union {
    char pad[64];
    int cooperative;
} CUlaunchAttributeValue;

typedef struct {
    unsigned id;
    char pad[4];
    CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct {
    unsigned gridDimX;
    unsigned gridDimY;
    unsigned gridDimZ;
    unsigned blockDimX;
    unsigned blockDimY;
    unsigned blockDimZ;
    unsigned sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

typedef struct {
    CUfunction func;
    unsigned gridDimX;
    unsigned gridDimY;
    unsigned gridDimZ;
    unsigned blockDimX;
    unsigned blockDimY;
    unsigned blockDimZ;
    unsigned sharedMemBytes;
    void **kernelParams;
    void **extra;
    CUkernel kern;
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
    CUdeviceptr dst;
    size_t pitch;
    unsigned value;
    unsigned elementSize;
    size_t width;
    size_t height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
    CUhostFn fn;
    void *userData;
} CUDA_HOST_NODE_PARAMS;

typedef struct {
    unsigned type;
    int id;
} CUmemLocation;

typedef struct {
    CUgraphExecUpdateResult result;
    CUgraphNode errorNode;
    CUgraphNode errorFromNode;
} CUgraphExecUpdateResultInfo;

/* The default stream of a thread, where a per-thread variant is given 0. */
#define CU_STREAM_LEGACY ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)
#define PER_THREAD(stream) ((stream) == NULL ? CU_STREAM_PER_THREAD : (stream))

static inline const CUlaunchConfig *per_thread_config(const CUlaunchConfig *config,
                                                      CUlaunchConfig *copy)
{
    if (config == NULL) {
        return NULL;
    }
    *copy = *config;
    copy->hStream = PER_THREAD(config->hStream);
    return copy;
}

#ifndef DRIVER_API
#define DRIVER_API __attribute__((visibility("default")))
#endif

#define DRIVER_DECLARE(name, suffix, since, parameters) DRIVER_API CUresult name##suffix parameters;
DRIVER_PLAIN_CALLS(DRIVER_DECLARE)
DRIVER_CODE_CALLS(DRIVER_DECLARE)
DRIVER_OTHER_VERSIONS(DRIVER_DECLARE)
#undef DRIVER_DECLARE
#define DRIVER_DECLARE(name, suffix, since, since_pt, suffix_pt, parameters, arguments) \
    DRIVER_API CUresult name##suffix parameters;                                        \
    DRIVER_API CUresult name##suffix##suffix_pt parameters;
DRIVER_STREAM_CALLS(DRIVER_DECLARE)
DRIVER_LAUNCH_CALLS(DRIVER_DECLARE)
#undef DRIVER_DECLARE

#endif
