/* Memory of the device and of the host, and what is known about pointers. */
#include "tests/ptx/cudart/cudart.h"

static CUdeviceptr device(const void *address)
{
    return (uintptr_t)address;
}

/* Ends a call that stores an address. */
static cudaError_t give(CUresult result, const CUdeviceptr *address, void **out)
{
    if (result == CUDA_SUCCESS) {
        *out = (void *)(uintptr_t)*address;
    }
    return cudart_leave((int)result);
}

/* No bytes are no error: the address is NULL then. */
cudaError_t cudaMalloc(void **address, size_t bytes)
{
    CUdeviceptr made = 0;

    CUDART_ENTER();
    if (address == NULL) {
        return cudart_leave(cudaErrorInvalidValue);
    }
    if (bytes == 0) {
        return give(CUDA_SUCCESS, &made, address);
    }
    return give(cudart_driver()->cuMemAlloc(&made, bytes), &made, address);
}

cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned int flags)
{
    CUdeviceptr made = 0;

    CUDART_ENTER();
    if (address == NULL) {
        return cudart_leave(cudaErrorInvalidValue);
    }
    return give(cudart_driver()->cuMemAllocManaged(&made, bytes, flags), &made, address);
}

cudaError_t cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
    enum { ELEMENT_BYTES = 4 };
    CUdeviceptr made = 0;

    CUDART_ENTER();
    if (address == NULL) {
        return cudart_leave(cudaErrorInvalidValue);
    }
    return give(cudart_driver()->cuMemAllocPitch(&made, pitch, width, height, ELEMENT_BYTES), &made,
                address);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *address, struct cudaExtent extent)
{
    struct cudaPitchedPtr made = {.xsize = extent.width, .ysize = extent.height};
    cudaError_t error =
        cudaMallocPitch(&made.ptr, &made.pitch, extent.width, extent.height * extent.depth);

    if (error == cudaSuccess) {
        *address = made;
    }
    return error;
}

cudaError_t cudaFree(void *address)
{
    CUDART_FORWARD(cuMemFree, device(address));
}

cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream)
{
    CUdeviceptr made = 0;

    CUDART_ENTER();
    if (address == NULL) {
        return cudart_leave(cudaErrorInvalidValue);
    }
    return give(cudart_driver()->cuMemAllocAsync(&made, bytes, stream), &made, address);
}

cudaError_t cudaMallocFromPoolAsync(void **address, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream)
{
    CUdeviceptr made = 0;

    CUDART_ENTER();
    if (address == NULL) {
        return cudart_leave(cudaErrorInvalidValue);
    }
    return give(cudart_driver()->cuMemAllocFromPoolAsync(&made, bytes, pool, stream), &made,
                address);
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
    CUDART_FORWARD(cuMemFreeAsync, device(address), stream);
}

cudaError_t cudaMemAdvise(const void *address, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
    const CUmemLocation where = {location.type, location.id};

    CUDART_FORWARD(cuMemAdvise, device(address), bytes, (CUmem_advise)advice, where);
}

cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes, struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream)
{
    const CUmemLocation where = {location.type, location.id};

    CUDART_FORWARD(cuMemPrefetchAsync, device(address), bytes, where, flags, stream);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *address, size_t bytes,
                                     unsigned int flags)
{
    CUDART_FORWARD(cuStreamAttachMemAsync, stream, device(address), bytes, flags);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    CUDART_FORWARD(cuMemGetInfo, free_bytes, total_bytes);
}

cudaError_t cudaMallocHost(void **address, size_t bytes)
{
    CUDART_FORWARD(cuMemAllocHost, address, bytes);
}

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    CUDART_FORWARD(cuMemHostAlloc, address, bytes, flags);
}

cudaError_t cudaFreeHost(void *address)
{
    CUDART_FORWARD(cuMemFreeHost, address);
}

cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned int flags)
{
    CUDART_FORWARD(cuMemHostRegister, address, bytes, flags);
}

cudaError_t cudaHostUnregister(void *address)
{
    CUDART_FORWARD(cuMemHostUnregister, address);
}

cudaError_t cudaHostGetDevicePointer(void **address, void *host, unsigned int flags)
{
    CUdeviceptr found = 0;

    CUDART_ENTER();
    return give(cudart_driver()->cuMemHostGetDevicePointer(&found, host, flags), &found, address);
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *host)
{
    CUDART_FORWARD(cuMemHostGetFlags, flags, host);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
    enum { COUNT = 5 };
    CUpointer_attribute wanted[COUNT] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER,
    };
    unsigned type = 0;
    unsigned is_managed = 0;
    int ordinal = 0;
    CUdeviceptr on_device = 0;
    void *on_host = NULL;
    void *values[COUNT] = {&type, &is_managed, &ordinal, &on_device, &on_host};
    CUresult result;

    CUDART_ENTER();
    if (attributes == NULL) {
        return cudart_leave(cudaErrorInvalidValue);
    }
    result = cudart_driver()->cuPointerGetAttributes(COUNT, wanted, values, device(address));
    if (result != CUDA_SUCCESS) {
        return cudart_leave((int)result);
    }
    *attributes = (struct cudaPointerAttributes){
        .type = is_managed                     ? cudaMemoryTypeManaged
                : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                               : cudaMemoryTypeUnregistered,
        .device = ordinal,
        .devicePointer = (void *)(uintptr_t)on_device,
        .hostPointer = type == 0 ? (void *)(uintptr_t)address : on_host,
    };
    return cudaSuccess;
}
