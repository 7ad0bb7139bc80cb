/* The types of CUDA's runtime, as far as the calls in cudart_calls.h use them. Numbers that matter
   here are listed in cudart_values.h. */
#ifndef CAPU_TESTS_PTX_CUDART_TYPES_H
#define CAPU_TESTS_PTX_CUDART_TYPES_H

#include "tests/ptx/include/cudart_calls.h"
#include "tests/ptx/include/cudart_values.h"
#include "tests/ptx/include/driver_types.h"

#define CUDART_DRIVER_ENUMERATOR(driver_name, name, number, text) name = number,
#define CUDART_ENUMERATOR(name, number, text) name = number,
typedef enum cudaError {
    DRIVER_ERRORS(CUDART_DRIVER_ENUMERATOR) CUDART_ERRORS(CUDART_ENUMERATOR)
} cudaError_t;
#undef CUDART_DRIVER_ENUMERATOR
#undef CUDART_ENUMERATOR

#define CUDART_ENUMERATOR(name, number) name = number,
enum cudaMemcpyKind { CUDART_MEMCPY_KINDS(CUDART_ENUMERATOR) };
enum cudaMemoryType { CUDART_MEMORY_TYPES(CUDART_ENUMERATOR) };
enum cudaDeviceAttr { CUDART_DEVICE_ATTRIBUTES(CUDART_ENUMERATOR) }; /* the driver's numbers */
enum cudaDriverEntryPointQueryResult { CUDART_ENTRY_POINT_RESULTS(CUDART_ENUMERATOR) };
enum cudaStreamCaptureStatus { CUDART_CAPTURE_STATUSES(CUDART_ENUMERATOR) };
enum cudaStreamCaptureMode { CUDART_CAPTURE_MODES(CUDART_ENUMERATOR) };
enum cudaGraphExecUpdateResult { CUDART_UPDATE_RESULTS(CUDART_ENUMERATOR) };
enum { CUDART_FLAGS(CUDART_ENUMERATOR) };
#undef CUDART_ENUMERATOR
enum cudaLimit { cudaLimitStackSize };
enum cudaFuncCache { cudaFuncCachePreferNone };
enum cudaMemPoolAttr { cudaMemPoolReuseFollowEventDependencies = 1 }; /* the driver's numbers */
enum cudaMemoryAdvise { cudaMemAdviseSetReadMostly = 1 };             /* the same */

typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUmemoryPool cudaMemPool_t;
struct cudaMemPoolProps; /* as CUmemPoolProps */
typedef struct cudaArray *cudaArray_t;
typedef void (*cudaHostFn_t)(void *argument);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *argument);

typedef CUgraph cudaGraph_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExecUpdateResultInfo cudaGraphExecUpdateResultInfo;
typedef CUkernel cudaKernel_t;
typedef CUfunction cudaFunction_t;

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 }; /* the driver's */

typedef struct dim3 {
    unsigned int x, y, z;
#ifdef __cplusplus
    constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
#endif
} dim3;

struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim;
    dim3 blockDim;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
};

struct cudaHostNodeParams {
    cudaHostFn_t fn;
    void *userData;
};

struct cudaMemLocation {
    unsigned type;
    int id;
};

struct cudaMemsetParams {
    void *dst;
    size_t pitch;
    unsigned int value;
    unsigned int elementSize;
    size_t width;
    size_t height;
};

/* Attributes of launches have the driver's numbers and layout. */
typedef struct cudaLaunchConfig_st {
    dim3 gridDim;
    dim3 blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} cudaLaunchConfig_t;

struct cudaFuncAttributes {
    size_t sharedSizeBytes;
    size_t constSizeBytes;
    size_t localSizeBytes;
    int maxThreadsPerBlock;
    int numRegs;
    int ptxVersion;
    int binaryVersion;
    int cacheModeCA;
    int maxDynamicSharedSizeBytes;
    int preferredShmemCarveout;
    int others[6];
    int reserved[16];
};

struct cudaPitchedPtr {
    void *ptr;
    size_t pitch;
    size_t xsize;
    size_t ysize;
};

struct cudaExtent {
    size_t width;
    size_t height;
    size_t depth;
};

struct cudaPos {
    size_t x;
    size_t y;
    size_t z;
};

struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    struct cudaPos srcPos;
    struct cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    struct cudaPos dstPos;
    struct cudaPitchedPtr dstPtr;
    struct cudaExtent extent;
    enum cudaMemcpyKind kind;
};

struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer;
    void *hostPointer;
    long reserved[8];
};

/* The fields that programs read have names; those between them do not matter here. */
struct cudaDeviceProp {
    char name[256];
    char uuid[16];
    char luid[12];
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    size_t memPitch;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    size_t totalConstMem;
    int major;
    int minor;
    size_t textureAlignment;
    size_t texturePitchAlignment;
    int multiProcessorCount;
    int integrated;
    int canMapHostMemory;
    int textureSizes[39];
    size_t surfaceAlignment;
    int concurrentKernels;
    int ECCEnabled;
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    int tccDriver;
    int asyncEngineCount;
    int unifiedAddressing;
    int memoryBusWidth;
    int l2CacheSize;
    int persistingL2CacheMaxSize;
    int maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported;
    int globalL1CacheSupported;
    int localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor;
    int managedMemory;
    int isMultiGpuBoard;
    int multiGpuBoardGroupID;
    int hostNativeAtomicSupported;
    int pageableMemoryAccess;
    int concurrentManagedAccess;
    int computePreemptionSupported;
    int canUseHostPointerForRegisteredMem;
    int cooperativeLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables;
    int directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor;
    int accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported;
    int sparseCudaArraySupported;
    int hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported;
    int memoryPoolsSupported;
    int others[15];
    int reserved[56];
};

#ifndef CUDART_API
#define CUDART_API __attribute__((visibility("default")))
#endif

#define CUDART_DECLARE(name, parameters) CUDART_API cudaError_t name parameters;
CUDART_PLAIN_CALLS(CUDART_DECLARE)
#undef CUDART_DECLARE
#define CUDART_DECLARE(name, suffix_pt, parameters, arguments) \
    CUDART_API cudaError_t name parameters;                    \
    CUDART_API cudaError_t name##suffix_pt parameters;
CUDART_STREAM_CALLS(CUDART_DECLARE)
#undef CUDART_DECLARE
#define CUDART_DECLARE(name, parameters) CUDART_API const char *name parameters;
CUDART_TEXT_CALLS(CUDART_DECLARE)
#undef CUDART_DECLARE

#endif
