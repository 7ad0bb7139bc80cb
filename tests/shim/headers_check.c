/* Compiled where NVIDIA's headers are installed: interpose/shim/driver.h has the driver's values.
 */
#include <cuda.h>

#define CUresult own_result
#define CUdevice own_device
#define CUcontext own_context
#define CUstream own_stream
#undef CUdeviceptr
#define CUdeviceptr own_pointer
#include "interpose/shim/driver.h"

#define SAME(own, theirs) _Static_assert((int)(own) == (int)(theirs), #own)

SAME(DRIVER_SUCCESS, CUDA_SUCCESS);
SAME(DRIVER_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(DRIVER_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(DRIVER_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(DRIVER_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(DRIVER_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(DRIVER_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(DRIVER_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(DRIVER_LEGACY_STREAM, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
SAME(DRIVER_PER_THREAD_STREAM, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
