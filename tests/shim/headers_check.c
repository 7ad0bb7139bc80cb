/* Compiled where NVIDIA's headers are installed: interpose/shim/driver.h has the driver's values,
   and its structs have the layout of the driver's. */
#include <cuda.h>

#include <stddef.h>

#define CUresult own_result
#define CUdevice own_device
#undef CUdeviceptr
#define CUdeviceptr own_pointer
#define CUcontext own_context
#define CUstream own_stream
#define CUevent own_event
#define CUmodule own_module
#define CUlibrary own_library
#define CUkernel own_kernel
#define CUfunction own_function
#define CUarray own_array
#define CUmipmappedArray own_levels
#define CUmemoryPool own_pool
#include "interpose/shim/driver.h"

#define SAME(own, theirs) _Static_assert((long)(own) == (long)(theirs), #own)
#define SAME_SIZE(own, theirs) SAME(sizeof(own), sizeof(theirs))
#define SAME_PLACE(own, member, theirs, their_member) \
    SAME(offsetof(own, member), offsetof(theirs, their_member))

SAME(DRIVER_SUCCESS, CUDA_SUCCESS);
SAME(DRIVER_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(DRIVER_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(DRIVER_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(DRIVER_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(DRIVER_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(DRIVER_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(DRIVER_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(DRIVER_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
SAME(DRIVER_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(DRIVER_UNKNOWN, CUDA_ERROR_UNKNOWN);
SAME(DRIVER_LEGACY_STREAM, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
SAME(DRIVER_PER_THREAD_STREAM, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
SAME(STREAM_PER_THREAD, CU_STREAM_PER_THREAD);
SAME(STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME(ATTRIBUTE_CLUSTER, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(DRIVER_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(DRIVER_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
SAME(POINTER_SYNC_MEMOPS, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
SAME(POINTER_BUFFER_ID, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME(POINTER_RANGE_START, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(POINTER_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME(MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(MEMORY_ARRAY, CU_MEMORYTYPE_ARRAY);
SAME(MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED);
SAME(LAUNCH_END, CU_LAUNCH_PARAM_END);
SAME(LAUNCH_BUFFER, CU_LAUNCH_PARAM_BUFFER_POINTER);
SAME(LAUNCH_BUFFER_BYTES, CU_LAUNCH_PARAM_BUFFER_SIZE);

SAME_SIZE(struct launch_attribute, CUlaunchAttribute);
SAME_PLACE(struct launch_attribute, value, CUlaunchAttribute, value);
SAME_SIZE(struct copy_2d, CUDA_MEMCPY2D_v2);
SAME_PLACE(struct copy_2d, from_device, CUDA_MEMCPY2D_v2, srcDevice);
SAME_PLACE(struct copy_2d, to_x, CUDA_MEMCPY2D_v2, dstXInBytes);
SAME_PLACE(struct copy_2d, to_pitch, CUDA_MEMCPY2D_v2, dstPitch);
SAME_PLACE(struct copy_2d, width, CUDA_MEMCPY2D_v2, WidthInBytes);
SAME_SIZE(struct copy_3d, CUDA_MEMCPY3D_v2);
SAME_PLACE(struct copy_3d, from_device, CUDA_MEMCPY3D_v2, srcDevice);
SAME_PLACE(struct copy_3d, from_height, CUDA_MEMCPY3D_v2, srcHeight);
SAME_PLACE(struct copy_3d, to_height, CUDA_MEMCPY3D_v2, dstHeight);
SAME_PLACE(struct copy_3d, depth, CUDA_MEMCPY3D_v2, Depth);
SAME_SIZE(struct array_2d, CUDA_ARRAY_DESCRIPTOR_v2);
SAME_PLACE(struct array_2d, channels, CUDA_ARRAY_DESCRIPTOR_v2, NumChannels);
SAME_SIZE(struct array_3d, CUDA_ARRAY3D_DESCRIPTOR_v2);
SAME_PLACE(struct array_3d, depth, CUDA_ARRAY3D_DESCRIPTOR_v2, Depth);
SAME_PLACE(struct array_3d, channels, CUDA_ARRAY3D_DESCRIPTOR_v2, NumChannels);
SAME_SIZE(CUpages, CUmemGenericAllocationHandle);
SAME_PLACE(struct page_properties, location.type, CUmemAllocationProp, location.type);
SAME(LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_SIZE(struct launch_config, CUlaunchConfig);
SAME_PLACE(struct launch_config, stream, CUlaunchConfig, hStream);
SAME_PLACE(struct launch_config, attribute_count, CUlaunchConfig, numAttrs);
