/* Numbers and layouts of CUDA's runtime, as lists, as in driver_values.h. */
#ifndef CAPU_TESTS_PTX_CUDART_VALUES_H
#define CAPU_TESTS_PTX_CUDART_VALUES_H

/* X(name, number, text): errors of the runtime that the driver does not have. */
#define CUDART_ERRORS(X)                                                               \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")              \
    X(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                        \
    X(cudaErrorInvalidSymbol, 13, "invalid device symbol")                             \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")        \
    X(cudaErrorInsufficientDriver, 35,                                                 \
      "CUDA driver version is insufficient for CUDA runtime version")                  \
    X(cudaErrorMissingConfiguration, 52, "__global__ function call is not configured") \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                   \
    X(cudaErrorSharedObjectSymbolNotFound, 302, "shared object symbol not found")

/* X(name, number) */
#define CUDART_MEMCPY_KINDS(X)     \
    X(cudaMemcpyHostToHost, 0)     \
    X(cudaMemcpyHostToDevice, 1)   \
    X(cudaMemcpyDeviceToHost, 2)   \
    X(cudaMemcpyDeviceToDevice, 3) \
    X(cudaMemcpyDefault, 4)
#define CUDART_MEMORY_TYPES(X)       \
    X(cudaMemoryTypeUnregistered, 0) \
    X(cudaMemoryTypeHost, 1)         \
    X(cudaMemoryTypeDevice, 2)       \
    X(cudaMemoryTypeManaged, 3)
#define CUDART_DEVICE_ATTRIBUTES(X)     \
    X(cudaDevAttrMaxThreadsPerBlock, 1) \
    X(cudaDevAttrHostNumaId, 134)
#define CUDART_ENTRY_POINT_RESULTS(X)        \
    X(cudaDriverEntryPointSuccess, 0)        \
    X(cudaDriverEntryPointSymbolNotFound, 1) \
    X(cudaDriverEntryPointVersionNotSufficent, 2)
#define CUDART_CAPTURE_STATUSES(X)      \
    X(cudaStreamCaptureStatusNone, 0)   \
    X(cudaStreamCaptureStatusActive, 1) \
    X(cudaStreamCaptureStatusInvalidated, 2)
#define CUDART_CAPTURE_MODES(X)            \
    X(cudaStreamCaptureModeGlobal, 0)      \
    X(cudaStreamCaptureModeThreadLocal, 1) \
    X(cudaStreamCaptureModeRelaxed, 2)
#define CUDART_UPDATE_RESULTS(X)                  \
    X(cudaGraphExecUpdateSuccess, 0)              \
    X(cudaGraphExecUpdateError, 1)                \
    X(cudaGraphExecUpdateErrorTopologyChanged, 2) \
    X(cudaGraphExecUpdateErrorNodeTypeChanged, 3) \
    X(cudaGraphExecUpdateErrorParametersChanged, 5)

/* These are macros in NVIDIA's headers. */
#define CUDART_FLAGS(X)            \
    X(cudaEnableDefault, 0)        \
    X(cudaHostAllocPortable, 1)    \
    X(cudaHostRegisterPortable, 1) \
    X(cudaStreamNonBlocking, 1)    \
    X(cudaEventDefault, 0)         \
    X(cudaEventRecordDefault, 0)   \
    X(cudaEventRecordExternal, 1)  \
    X(cudaEventDisableTiming, 2)

/* X(type, field, offset), and X(type, bytes) */
#define CUDART_FIELDS(X)                                        \
    X(cudaGraphExecUpdateResultInfo, result, 0)                 \
    X(cudaGraphExecUpdateResultInfo, errorNode, 8)              \
    X(cudaGraphExecUpdateResultInfo, errorFromNode, 16)         \
    X(struct cudaDeviceProp, totalGlobalMem, 288)               \
    X(struct cudaDeviceProp, sharedMemPerBlock, 296)            \
    X(struct cudaDeviceProp, warpSize, 308)                     \
    X(struct cudaDeviceProp, maxThreadsPerBlock, 320)           \
    X(struct cudaDeviceProp, totalConstMem, 352)                \
    X(struct cudaDeviceProp, major, 360)                        \
    X(struct cudaDeviceProp, multiProcessorCount, 384)          \
    X(struct cudaDeviceProp, surfaceAlignment, 552)             \
    X(struct cudaDeviceProp, asyncEngineCount, 584)             \
    X(struct cudaDeviceProp, l2CacheSize, 596)                  \
    X(struct cudaDeviceProp, maxThreadsPerMultiProcessor, 604)  \
    X(struct cudaDeviceProp, sharedMemPerMultiprocessor, 624)   \
    X(struct cudaDeviceProp, managedMemory, 636)                \
    X(struct cudaDeviceProp, cooperativeLaunch, 668)            \
    X(struct cudaDeviceProp, sharedMemPerBlockOptin, 672)       \
    X(struct cudaDeviceProp, reservedSharedMemPerBlock, 696)    \
    X(struct cudaDeviceProp, memoryPoolsSupported, 720)         \
    X(struct cudaDeviceProp, reserved, 784)                     \
    X(struct cudaFuncAttributes, maxDynamicSharedSizeBytes, 44) \
    X(cudaLaunchConfig_t, dynamicSmemBytes, 24)                 \
    X(cudaLaunchConfig_t, numAttrs, 48)                         \
    X(struct cudaPointerAttributes, device, 4)                  \
    X(struct cudaPointerAttributes, hostPointer, 16)            \
    X(struct cudaMemcpy3DParms, srcPtr, 32)                     \
    X(struct cudaMemcpy3DParms, dstPtr, 96)                     \
    X(struct cudaMemcpy3DParms, kind, 152)
#define CUDART_SIZES(X)                  \
    X(cudaGraphExecUpdateResultInfo, 24) \
    X(struct cudaDeviceProp, 1008)       \
    X(struct cudaFuncAttributes, 144)    \
    X(cudaLaunchConfig_t, 56)            \
    X(dim3, 12)                          \
    X(struct cudaPointerAttributes, 88)  \
    X(struct cudaMemcpy3DParms, 160)

#endif
