/* Numbers and layouts of CUDA's driver, as lists, which headers_check.c compares with NVIDIA's
   headers where those are installed. */
#ifndef CAPU_TESTS_PTX_DRIVER_VALUES_H
#define CAPU_TESTS_PTX_DRIVER_VALUES_H

/* X(driver's name, runtime's name, number, text) */
#define DRIVER_ERRORS(X)                                                                         \
    X(CUDA_SUCCESS, cudaSuccess, 0, "no error")                                                  \
    X(CUDA_ERROR_INVALID_VALUE, cudaErrorInvalidValue, 1, "invalid argument")                    \
    X(CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation, 2, "out of memory")                   \
    X(CUDA_ERROR_NOT_INITIALIZED, cudaErrorInitializationError, 3, "initialization error")       \
    X(CUDA_ERROR_DEINITIALIZED, cudaErrorCudartUnloading, 4, "driver shutting down")             \
    X(CUDA_ERROR_DEVICE_UNAVAILABLE, cudaErrorDevicesUnavailable, 46,                            \
      "CUDA-capable device(s) is/are busy or unavailable")                                       \
    X(CUDA_ERROR_NO_DEVICE, cudaErrorNoDevice, 100, "no CUDA-capable device is detected")        \
    X(CUDA_ERROR_INVALID_DEVICE, cudaErrorInvalidDevice, 101, "invalid device ordinal")          \
    X(CUDA_ERROR_INVALID_IMAGE, cudaErrorInvalidKernelImage, 200,                                \
      "device kernel image is invalid")                                                          \
    X(CUDA_ERROR_INVALID_CONTEXT, cudaErrorDeviceUninitialized, 201, "invalid device context")   \
    X(CUDA_ERROR_ALREADY_MAPPED, cudaErrorAlreadyMapped, 208, "resource already mapped")         \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, cudaErrorNoKernelImageForDevice, 209,                        \
      "no kernel image is available for execution on the device")                                \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, cudaErrorECCUncorrectable, 214,                              \
      "uncorrectable ECC error encountered")                                                     \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, cudaErrorNvlinkUncorrectable, 220,                        \
      "uncorrectable NVLink error detected during the execution")                                \
    X(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, cudaErrorJitCompilerNotFound, 221,                      \
      "PTX JIT compiler library not found")                                                      \
    X(CUDA_ERROR_UNSUPPORTED_LIMIT, cudaErrorUnsupportedLimit, 215,                              \
      "limit is not supported on this architecture")                                             \
    X(CUDA_ERROR_INVALID_PTX, cudaErrorInvalidPtx, 218, "a PTX JIT compilation failed")          \
    X(CUDA_ERROR_FILE_NOT_FOUND, cudaErrorFileNotFound, 301, "file not found")                   \
    X(CUDA_ERROR_OPERATING_SYSTEM, cudaErrorOperatingSystem, 304,                                \
      "OS call failed or operation not supported on this OS")                                    \
    X(CUDA_ERROR_INVALID_HANDLE, cudaErrorInvalidResourceHandle, 400, "invalid resource handle") \
    X(CUDA_ERROR_ILLEGAL_STATE, cudaErrorIllegalState, 401,                                      \
      "the operation cannot be performed in the present state")                                  \
    X(CUDA_ERROR_NOT_FOUND, cudaErrorSymbolNotFound, 500, "named symbol not found")              \
    X(CUDA_ERROR_NOT_READY, cudaErrorNotReady, 600, "device not ready")                          \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, cudaErrorIllegalAddress, 700,                                  \
      "an illegal memory access was encountered")                                                \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, cudaErrorLaunchOutOfResources, 701,                    \
      "too many resources requested for launch")                                                 \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, cudaErrorLaunchTimeout, 702,                                    \
      "the launch timed out and was terminated")                                                 \
    X(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, cudaErrorSetOnActiveProcess, 708,                       \
      "cannot set while device is active in this process")                                       \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, cudaErrorContextIsDestroyed, 709, "context is destroyed") \
    X(CUDA_ERROR_ASSERT, cudaErrorAssert, 710, "device-side assert triggered")                   \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cudaErrorHostMemoryAlreadyRegistered, 712,      \
      "part or all of the requested memory range is already mapped")                             \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cudaErrorHostMemoryNotRegistered, 713,              \
      "pointer does not correspond to a registered memory region")                               \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, cudaErrorHardwareStackError, 714, "hardware stack error") \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, cudaErrorIllegalInstruction, 715,                          \
      "an illegal instruction was encountered")                                                  \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, cudaErrorMisalignedAddress, 716, "misaligned address")      \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, cudaErrorInvalidAddressSpace, 717,                       \
      "operation not supported on global/shared address space")                                  \
    X(CUDA_ERROR_INVALID_PC, cudaErrorInvalidPc, 718, "invalid program counter")                 \
    X(CUDA_ERROR_LAUNCH_FAILED, cudaErrorLaunchFailure, 719, "unspecified launch failure")       \
    X(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cudaErrorCooperativeLaunchTooLarge, 720,          \
      "too many blocks in cooperative launch")                                                   \
    X(CUDA_ERROR_NOT_SUPPORTED, cudaErrorNotSupported, 801, "operation not supported")           \
    X(CUDA_ERROR_MPS_CLIENT_TERMINATED, cudaErrorMpsClientTerminated, 810,                       \
      "the MPS client has been terminated by the server")                                        \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cudaErrorStreamCaptureUnsupported, 900,             \
      "operation not permitted when stream is capturing")                                        \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cudaErrorStreamCaptureInvalidated, 901,             \
      "operation failed due to a previous error during capture")                                 \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, cudaErrorStreamCaptureMerge, 902,                         \
      "operation would result in a merge of separate capture sequences")                         \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cudaErrorStreamCaptureUnmatched, 903,                 \
      "capture was not ended in the same stream as it began")                                    \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cudaErrorStreamCaptureUnjoined, 904,                   \
      "capturing stream has unjoined work")                                                      \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cudaErrorStreamCaptureIsolation, 905,                 \
      "dependency created on uncaptured work in another stream")                                 \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cudaErrorStreamCaptureImplicit, 906,                   \
      "operation would make the legacy stream depend on a capturing blocking stream")            \
    X(CUDA_ERROR_CAPTURED_EVENT, cudaErrorCapturedEvent, 907,                                    \
      "operation not permitted on an event last recorded in a capturing stream")                 \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, cudaErrorStreamCaptureWrongThread, 908,            \
      "attempt to terminate a thread-local capture sequence from another thread")                \
    X(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cudaErrorGraphExecUpdateFailure, 910,                \
      "the graph update was not performed because it included changes which violated "           \
      "constraints specific to instantiated graph update")                                       \
    X(CUDA_ERROR_EXTERNAL_DEVICE, cudaErrorExternalDevice, 911,                                  \
      "an async error has occured in external entity outside of CUDA")                           \
    X(CUDA_ERROR_UNKNOWN, cudaErrorUnknown, 999, "unknown error")

/* X(name, number) */
#define DRIVER_ATTRIBUTES(X)                                           \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                    \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2)                          \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3)                          \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4)                          \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                           \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6)                           \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7)                           \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)              \
    X(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 9)                    \
    X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                               \
    X(CU_DEVICE_ATTRIBUTE_MAX_PITCH, 11)                               \
    X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 12)                 \
    X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                              \
    X(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 14)                       \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                    \
    X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19)                     \
    X(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 30)                       \
    X(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 31)                      \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                       \
    X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)                 \
    X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                           \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)          \
    X(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40)                      \
    X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                      \
    X(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 51)                 \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                \
    X(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 78)             \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)    \
    X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82)        \
    X(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 83)                          \
    X(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 89)               \
    X(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91) \
    X(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 95)                      \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)       \
    X(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 99)                 \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 106)          \
    X(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 111)       \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)                 \
    X(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 134)                           \
    X(CU_POINTER_ATTRIBUTE_CONTEXT, 1)                                 \
    X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                             \
    X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)                          \
    X(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4)                            \
    X(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 6)                             \
    X(CU_POINTER_ATTRIBUTE_BUFFER_ID, 7)                               \
    X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                              \
    X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                          \
    X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                       \
    X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                             \
    X(CU_POINTER_ATTRIBUTE_MAPPED, 13)                                 \
    X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                      \
    X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                          \
    X(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 2)                           \
    X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                           \
    X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                   \
    X(CU_FUNC_ATTRIBUTE_PTX_VERSION, 5)                                \
    X(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                             \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)              \
    X(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9)           \
    X(CU_MEMORYTYPE_HOST, 1)                                           \
    X(CU_MEMORYTYPE_DEVICE, 2)                                         \
    X(CU_MEMORYTYPE_ARRAY, 3)                                          \
    X(CU_MEMORYTYPE_UNIFIED, 4)                                        \
    X(CU_STREAM_NON_BLOCKING, 1)                                       \
    X(CU_EVENT_BLOCKING_SYNC, 1)                                       \
    X(CU_EVENT_DISABLE_TIMING, 2)                                      \
    X(CU_EVENT_INTERPROCESS, 4)                                        \
    X(CU_GET_PROC_ADDRESS_LEGACY_STREAM, 1)                            \
    X(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, 2)                \
    X(CU_GET_PROC_ADDRESS_SUCCESS, 0)                                  \
    X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1)                         \
    X(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, 2)                   \
    X(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                              \
    X(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                        \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                \
    X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                              \
    X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)                         \
    X(CU_STREAM_CAPTURE_MODE_GLOBAL, 0)                                \
    X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                          \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                               \
    X(CU_EVENT_RECORD_EXTERNAL, 1)                                     \
    X(CU_STREAM_WAIT_VALUE_GEQ, 0)                                     \
    X(CU_STREAM_WAIT_VALUE_EQ, 1)                                      \
    X(CU_STREAM_WAIT_VALUE_AND, 2)                                     \
    X(CU_STREAM_WAIT_VALUE_NOR, 3)                                     \
    X(CU_GRAPH_NODE_TYPE_KERNEL, 0)                                    \
    X(CU_GRAPH_NODE_TYPE_MEMCPY, 1)                                    \
    X(CU_GRAPH_NODE_TYPE_MEMSET, 2)                                    \
    X(CU_GRAPH_NODE_TYPE_HOST, 3)                                      \
    X(CU_GRAPH_NODE_TYPE_GRAPH, 4)                                     \
    X(CU_GRAPH_NODE_TYPE_EVENT_RECORD, 7)                              \
    X(CU_GRAPH_EXEC_UPDATE_SUCCESS, 0)                                 \
    X(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, 2)                  \
    X(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, 3)

/* X(type, field, offset), and X(type, bytes) */
#define DRIVER_FIELDS(X)                \
    X(CUDA_MEMCPY2D, srcMemoryType, 16) \
    X(CUDA_MEMCPY2D, srcHost, 24)       \
    X(CUDA_MEMCPY2D, srcPitch, 48)      \
    X(CUDA_MEMCPY2D, dstMemoryType, 72) \
    X(CUDA_MEMCPY2D, dstDevice, 88)     \
    X(CUDA_MEMCPY2D, Height, 120)       \
    X(CUDA_MEMCPY3D, srcMemoryType, 32) \
    X(CUDA_MEMCPY3D, srcPitch, 72)      \
    X(CUDA_MEMCPY3D, srcHeight, 80)     \
    X(CUDA_MEMCPY3D, dstHost, 128)      \
    X(CUDA_MEMCPY3D, dstHeight, 168)    \
    X(CUDA_MEMCPY3D, Depth, 192)        \
    X(CUlaunchAttribute, value, 8)      \
    X(CUlaunchConfig, hStream, 32)      \
    X(CUlaunchConfig, attrs, 40)        \
    X(CUlaunchConfig, numAttrs, 48)
#define DRIVER_SIZES(X)      \
    X(CUDA_MEMCPY2D, 128)    \
    X(CUDA_MEMCPY3D, 200)    \
    X(CUlaunchAttribute, 72) \
    X(CUlaunchConfig, 56)    \
    X(CUuuid, 16)            \
    X(CUdeviceptr, 8)

#endif
