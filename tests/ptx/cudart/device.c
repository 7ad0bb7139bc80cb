/* Devices, their properties, and pools. */
#include "tests/ptx/cudart/cudart.h"

#include <string.h>

cudaError_t cudaDriverGetVersion(int *version)
{
    CUDART_FORWARD(cuDriverGetVersion, version);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    CUDART_FORWARD(cuDeviceGetCount, count);
}

cudaError_t cudaGetDevice(int *device)
{
    CUDART_FORWARD(cuCtxGetDevice, device, NULL);
}

cudaError_t cudaSetDevice(int device)
{
    CUdevice found;

    CUDART_FORWARD(cuDeviceGet, &found, device);
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
    (void)device_flags;
    (void)flags;
    return cudaSetDevice(device);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    CUDART_FORWARD(cuDevicePrimaryCtxSetFlags, 0, flags);
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    CUDART_FORWARD(cuCtxGetFlags, flags);
}

cudaError_t cudaDeviceReset(void)
{
    CUDART_FORWARD(cuDevicePrimaryCtxReset, 0);
}

cudaError_t cudaDeviceSynchronize(void)
{
    CUDART_FORWARD(cuCtxSynchronize, NULL);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    CUDART_FORWARD(cuCtxSetLimit, (CUlimit)limit, value);
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    CUDART_FORWARD(cuCtxGetLimit, value, (CUlimit)limit);
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
    CUDART_FORWARD(cuCtxSetCacheConfig, (CUfunc_cache)config);
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
    CUDART_FORWARD(cuCtxGetCacheConfig, (CUfunc_cache *)config);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    CUDART_FORWARD(cuDeviceGetAttribute, value, (CUdevice_attribute)attribute, device);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    CUDART_FORWARD(cuCtxGetStreamPriorityRange, least, greatest);
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
    CUDART_FORWARD(cuDeviceGetPCIBusId, text, bytes, device);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    CUDART_FORWARD(cuDeviceCanAccessPeer, can, device, peer);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    CUDART_FORWARD(cuDeviceGetDefaultMemPool, pool, device);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    CUDART_FORWARD(cuMemPoolSetAttribute, pool, (CUmemPool_attribute)attribute, value);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    CUDART_FORWARD(cuMemPoolGetAttribute, pool, (CUmemPool_attribute)attribute, value);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes)
{
    CUDART_FORWARD(cuMemPoolTrimTo, pool, bytes);
}

/* Its properties are the driver's. */
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    CUDART_FORWARD(cuMemPoolCreate, pool, (const CUmemPoolProps *)properties);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    CUDART_FORWARD(cuMemPoolDestroy, pool);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    CUDART_FORWARD(cuDeviceGetMemPool, pool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    CUDART_FORWARD(cuDeviceSetMemPool, device, pool);
}

static int attribute(CUdevice_attribute which, int device)
{
    int value = 0;

    (void)cudart_driver()->cuDeviceGetAttribute(&value, which, device);
    return value;
}

static void fill_limits(struct cudaDeviceProp *properties, int device)
{
    properties->sharedMemPerBlock =
        (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device);
    properties->regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, device);
    properties->warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device);
    properties->memPitch = (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH, device);
    properties->maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device);
    for (unsigned i = 0; i < 3; i++) {
        properties->maxThreadsDim[i] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i, device);
        properties->maxGridSize[i] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i, device);
    }
    properties->totalConstMem =
        (size_t)attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, device);
    properties->maxThreadsPerMultiProcessor =
        attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
    properties->sharedMemPerMultiprocessor =
        (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, device);
    properties->regsPerMultiprocessor =
        attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, device);
    properties->sharedMemPerBlockOptin =
        (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    properties->reservedSharedMemPerBlock =
        (size_t)attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, device);
    properties->maxBlocksPerMultiProcessor =
        attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, device);
}

static void fill_features(struct cudaDeviceProp *properties, int device)
{
    properties->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    properties->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    properties->textureAlignment = (size_t)attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, device);
    properties->multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    properties->canMapHostMemory = attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, device);
    properties->concurrentKernels = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, device);
    properties->asyncEngineCount = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, device);
    properties->unifiedAddressing = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, device);
    properties->memoryBusWidth = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device);
    properties->l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
    properties->streamPrioritiesSupported =
        attribute(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, device);
    properties->managedMemory = attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device);
    properties->concurrentManagedAccess =
        attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device);
    properties->canUseHostPointerForRegisteredMem =
        attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, device);
    properties->cooperativeLaunch = attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, device);
    properties->hostRegisterSupported =
        attribute(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, device);
    properties->memoryPoolsSupported =
        attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    CUuuid uuid;
    CUresult result;

    CUDART_ENTER();
    if (properties == NULL) {
        return cudart_leave(cudaErrorInvalidValue);
    }
    memset(properties, 0, sizeof(*properties));
    result = cudart_driver()->cuDeviceGetName(properties->name, sizeof(properties->name), device);
    if (result == CUDA_SUCCESS) {
        result = cudart_driver()->cuDeviceTotalMem(&properties->totalGlobalMem, device);
    }
    if (result == CUDA_SUCCESS) {
        result = cudart_driver()->cuDeviceGetUuid(&uuid, device);
        memcpy(properties->uuid, uuid.bytes, sizeof(properties->uuid));
    }
    if (result == CUDA_SUCCESS) {
        fill_limits(properties, device);
        fill_features(properties, device);
    }
    return cudart_leave((int)result);
}

cudaError_t cudaProfilerStart(void)
{
    return cudart_leave(cudart_enter());
}

cudaError_t cudaProfilerStop(void)
{
    return cudart_leave(cudart_enter());
}
