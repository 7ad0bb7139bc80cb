/*
 * Compiled, but never run, where NVIDIA's headers are installed: checks that everything the fake's
 * headers declare is declared in the same way there. A call with another type is a conflicting
 * declaration.
 */
#include "include/fake_cuda_calls.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

#define SAME_VALUE(name, value) _Static_assert((name) == (value), #name);
FAKE_CUDA_ERRORS(SAME_VALUE)
FAKE_CUDA_MEMCPY_KINDS(SAME_VALUE)
FAKE_CUDA_DEVICE_ATTRIBUTES(SAME_VALUE)
FAKE_CUDA_ENTRY_POINT_FLAGS(SAME_VALUE)
FAKE_CUDA_ENTRY_POINT_RESULTS(SAME_VALUE)
FAKE_CUDA_FLAGS(SAME_VALUE)
FAKE_CUDA_CAPTURE_STATUSES(SAME_VALUE)
FAKE_CUDA_CAPTURE_MODES(SAME_VALUE)
FAKE_CUDA_UPDATE_RESULTS(SAME_VALUE)
FAKE_DRIVER_ERRORS(SAME_VALUE)
FAKE_DRIVER_LOCATION_TYPES(SAME_VALUE)
FAKE_DRIVER_ALLOCATION_TYPES(SAME_VALUE)
FAKE_DRIVER_HANDLE_TYPES(SAME_VALUE)
FAKE_DRIVER_ACCESS_FLAGS(SAME_VALUE)
FAKE_DRIVER_GRANULARITIES(SAME_VALUE)
FAKE_DRIVER_WAIT_FLAGS(SAME_VALUE)

/* The cuda device treats errors of the runtime and of the driver alike. */
#define SAME_IN_BOTH(runtime, driver) _Static_assert((int)(runtime) == (int)(driver), #runtime);
SAME_IN_BOTH(cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY)
SAME_IN_BOTH(cudaErrorNotReady, CUDA_ERROR_NOT_READY)
SAME_IN_BOTH(cudaErrorCudartUnloading, CUDA_ERROR_DEINITIALIZED)
SAME_IN_BOTH(cudaErrorECCUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE)
SAME_IN_BOTH(cudaErrorNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE)
SAME_IN_BOTH(cudaErrorIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS)
SAME_IN_BOTH(cudaErrorLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT)
SAME_IN_BOTH(cudaErrorContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED)
SAME_IN_BOTH(cudaErrorAssert, CUDA_ERROR_ASSERT)
SAME_IN_BOTH(cudaErrorHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR)
SAME_IN_BOTH(cudaErrorIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION)
SAME_IN_BOTH(cudaErrorMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS)
SAME_IN_BOTH(cudaErrorInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE)
SAME_IN_BOTH(cudaErrorInvalidPc, CUDA_ERROR_INVALID_PC)
SAME_IN_BOTH(cudaErrorLaunchFailure, CUDA_ERROR_LAUNCH_FAILED)
SAME_IN_BOTH(cudaErrorMpsClientTerminated, CUDA_ERROR_MPS_CLIENT_TERMINATED)
SAME_IN_BOTH(cudaErrorExternalDevice, CUDA_ERROR_EXTERNAL_DEVICE)
SAME_IN_BOTH(cudaErrorUnknown, CUDA_ERROR_UNKNOWN)
#if CUDART_VERSION >= 13000
_Static_assert(cudaErrorContained == 226 && cudaErrorTensorMemoryLeak == 721, "cuda.c");
#endif

#define SAME_OFFSET(type, field, offset) \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field);
FAKE_DRIVER_FIELDS(SAME_OFFSET)
#define SAME_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type);
FAKE_DRIVER_SIZES(SAME_SIZE)
SAME_OFFSET(cudaGraphExecUpdateResultInfo, result, 0)
SAME_OFFSET(cudaGraphExecUpdateResultInfo, errorNode, 8)
SAME_OFFSET(cudaGraphExecUpdateResultInfo, errorFromNode, 16)
SAME_SIZE(cudaGraphExecUpdateResultInfo, 24)

#define SAME_RUNTIME_CALL(name, parameters) extern cudaError_t name parameters;
FAKE_CUDA_CALLS(SAME_RUNTIME_CALL)
#if CUDART_VERSION >= 13000
FAKE_CUDA_13_CALLS(SAME_RUNTIME_CALL)
#endif
#define SAME_ERROR_CALL(type, name, parameters) extern type name parameters;
FAKE_CUDA_ERROR_CALLS(SAME_ERROR_CALL)
#define SAME_DRIVER_CALL(name, parameters)                                                    \
    extern CUresult name parameters;                                                          \
    _Static_assert(__builtin_types_compatible_p(PFN_##name##_v10020, CUresult(*) parameters), \
                   #name);
FAKE_DRIVER_CALLS(SAME_DRIVER_CALL)
#define SAME_CONTEXT_CALL(name, parameters) \
    extern CUresult name parameters;        \
    _Static_assert(__builtin_types_compatible_p(PFN_##name##_v4000, CUresult(*) parameters), #name);
FAKE_DRIVER_CONTEXT_CALLS(SAME_CONTEXT_CALL)
#define SAME_WAIT_CALL(name, parameters)                                                      \
    extern CUresult name parameters;                                                          \
    _Static_assert(__builtin_types_compatible_p(PFN_##name##_v11070, CUresult(*) parameters), \
                   #name);
FAKE_DRIVER_WAIT_CALLS(SAME_WAIT_CALL)
