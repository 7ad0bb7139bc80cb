/*
 * Types and values of the CUDA driver's interface that the shim uses, written for it: nothing here
 * needs a toolkit. tests/shim/headers/headers_check.c compares them with NVIDIA's where those are
 * installed. The names of types are the driver's.
 */
#ifndef CAPU_SHIM_DRIVER_H
#define CAPU_SHIM_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUfunc_st *CUfunction;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef unsigned long long CUpages; /* CUmemGenericAllocationHandle */
typedef struct CUgraphicsResource_st *CUgraphicsResource;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

enum driver_result {
    DRIVER_SUCCESS = 0,
    DRIVER_INVALID_VALUE = 1,
    DRIVER_OUT_OF_MEMORY = 2,
    DRIVER_NOT_INITIALIZED = 3,
    DRIVER_NO_DEVICE = 100,
    DRIVER_INVALID_DEVICE = 101,
    DRIVER_NO_COMPILER = 221,       /* it is not installed */
    DRIVER_OLD_COMPILER = 222,      /* than the PTX */
    DRIVER_COMPILER_DISABLED = 223, /* by CUDA_DISABLE_PTX_JIT */
    DRIVER_NOT_FOUND = 500,
    DRIVER_ILLEGAL_ADDRESS = 700,
    DRIVER_LAUNCH_FAILED = 719,
    DRIVER_NOT_SUPPORTED = 801,
    DRIVER_CAPTURE_FIRST = 900, /* errors of calls that a capture forbids */
    DRIVER_CAPTURE_LAST = 908,
    DRIVER_UNKNOWN = 999,
};

/* Flags of cuGetProcAddress. */
enum { DRIVER_LEGACY_STREAM = 1, DRIVER_PER_THREAD_STREAM = 2 };

/* The handle of the per-thread default stream. */
#define STREAM_PER_THREAD ((CUstream)2)

/* Flags of streams. */
enum { STREAM_NON_BLOCKING = 1 };

enum capture_status { CAPTURE_NONE = 0, CAPTURE_ACTIVE = 1 };
enum capture_mode { CAPTURE_GLOBAL = 0, CAPTURE_RELAXED = 2 };
enum { EVENT_RECORD_EXTERNAL = 1 };

enum driver_attribute { DRIVER_CAPABILITY_MAJOR = 75, DRIVER_CAPABILITY_MINOR = 76 };

enum pointer_attribute {
    POINTER_MEMORY_TYPE = 2,
    POINTER_DEVICE = 3,
    POINTER_SYNC_MEMOPS = 6,
    POINTER_BUFFER_ID = 7,
    POINTER_IS_MANAGED = 8,
    POINTER_RANGE_START = 11,
    POINTER_RANGE_SIZE = 12,
};

/* CUmemorytype */
enum memory_type { MEMORY_HOST = 1, MEMORY_DEVICE = 2, MEMORY_ARRAY = 3, MEMORY_UNIFIED = 4 };

/* CUDA_MEMCPY2D_v2 */
struct copy_2d {
    size_t from_x, from_y;
    unsigned from_type;
    const void *from_host;
    CUdeviceptr from_device;
    CUarray from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    unsigned to_type;
    void *to_host;
    CUdeviceptr to_device;
    CUarray to_array;
    size_t to_pitch;
    size_t width, height;
};

/* CUDA_MEMCPY3D_v2 */
struct copy_3d {
    size_t from_x, from_y, from_z, from_level;
    unsigned from_type;
    const void *from_host;
    CUdeviceptr from_device;
    CUarray from_array;
    void *reserved_from;
    size_t from_pitch, from_height;
    size_t to_x, to_y, to_z, to_level;
    unsigned to_type;
    void *to_host;
    CUdeviceptr to_device;
    CUarray to_array;
    void *reserved_to;
    size_t to_pitch, to_height;
    size_t width, height, depth;
};

/* CUlaunchAttribute */
struct launch_attribute {
    int id; /* ATTRIBUTE_CLUSTER, or others */
    char gap[4];
    union {
        char bytes[64];
        unsigned cluster[3];
        int cooperative;
    } value;
};

enum { ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_CLUSTER = 4 };

/* CUlaunchConfig */
struct launch_config {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    CUstream stream;
    struct launch_attribute *attributes;
    unsigned attribute_count;
};

/* CUgraphNodeType */
enum node_type {
    NODE_KERNEL = 0,
    NODE_MEMCPY = 1,
    NODE_MEMSET = 2,
    NODE_HOST = 3,
    NODE_GRAPH = 4,
    NODE_EMPTY = 5,
    NODE_WAIT_EVENT = 6,
    NODE_RECORD_EVENT = 7,
    NODE_SIGNAL = 8, /* of external semaphores, and the next */
    NODE_WAIT = 9,
    NODE_ALLOC = 10,
    NODE_FREE = 11,
    NODE_MEMORY_OPERATIONS = 12,
    NODE_CONDITIONAL = 13,
};

/* CUDA_KERNEL_NODE_PARAMS_v2 */
struct kernel_node {
    CUfunction function;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    void **parameters;
    void **extra;
    CUkernel kernel; /* if there is no function */
    CUcontext context;
};

/* CUDA_MEMSET_NODE_PARAMS_v1 */
struct memset_node {
    CUdeviceptr to;
    size_t pitch;
    unsigned value;
    unsigned element_bytes;
    size_t width, height;
};

/* CUDA_GRAPH_INSTANTIATE_PARAMS */
struct instantiate_params {
    uint64_t flags;
    CUstream upload_stream;
    CUgraphNode error_node;
    int result;
};

/* CUDA_ARRAY_DESCRIPTOR_v2 */
struct array_2d {
    size_t width, height;
    unsigned format, channels;
};

/* CUDA_ARRAY3D_DESCRIPTOR_v2 */
struct array_3d {
    size_t width, height, depth;
    unsigned format, channels, flags;
};

/* CUmemLocation. Type 0 is none; those from LOCATION_HOST on are of the host. */
enum { LOCATION_DEVICE = 1, LOCATION_HOST = 2 };
struct location {
    int type;
    int id;
};

/* The beginning of CUmemAllocationProp, and of CUmemPoolProps, which may also be managed. */
enum { POOL_PINNED = 1, POOL_MANAGED = 2 };
struct page_properties {
    int type;
    int handle_types;
    struct location location;
};

/* The list that replaces a launch's array of parameters. */
#define LAUNCH_END ((void *)0)
#define LAUNCH_BUFFER ((void *)1)
#define LAUNCH_BUFFER_BYTES ((void *)2)

typedef void (*host_function)(void *argument);
typedef void (*stream_callback)(CUstream stream, CUresult result, void *argument);

/* Functions of ours that the library exports under the driver's names. */
#define DRIVER_EXPORT __attribute__((visibility("default")))

#endif
