/* Copies and fills. */
#include "tests/ptx/cudart/cudart.h"

static CUdeviceptr device(const void *address)
{
    return (uintptr_t)address;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    const struct driver_table *driver;

    CUDART_ENTER();
    driver = cudart_driver();
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return cudart_leave((int)driver->cuMemcpyHtoD(device(to), from, bytes));
    case cudaMemcpyDeviceToHost:
        return cudart_leave((int)driver->cuMemcpyDtoH(to, device(from), bytes));
    case cudaMemcpyDeviceToDevice:
        return cudart_leave((int)driver->cuMemcpyDtoD(device(to), device(from), bytes));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return cudart_leave((int)driver->cuMemcpy(device(to), device(from), bytes));
    default:
        return cudart_leave(cudaErrorInvalidMemcpyDirection);
    }
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    const struct driver_table *driver;

    CUDART_ENTER();
    driver = cudart_driver();
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return cudart_leave((int)driver->cuMemcpyHtoDAsync(device(to), from, bytes, stream));
    case cudaMemcpyDeviceToHost:
        return cudart_leave((int)driver->cuMemcpyDtoHAsync(to, device(from), bytes, stream));
    case cudaMemcpyDeviceToDevice:
        return cudart_leave(
            (int)driver->cuMemcpyDtoDAsync(device(to), device(from), bytes, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return cudart_leave((int)driver->cuMemcpyAsync(device(to), device(from), bytes, stream));
    default:
        return cudart_leave(cudaErrorInvalidMemcpyDirection);
    }
}

/* The driver's kind of memory on either side. False: not a direction. */
static bool types_of(enum cudaMemcpyKind kind, CUmemorytype *to, CUmemorytype *from)
{
    if ((unsigned)kind > cudaMemcpyDefault) {
        return false;
    }
    if (kind == cudaMemcpyDefault) {
        *to = *from = CU_MEMORYTYPE_UNIFIED;
        return true;
    }
    *to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ? CU_MEMORYTYPE_DEVICE
                                                                             : CU_MEMORYTYPE_HOST;
    *from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice
                ? CU_MEMORYTYPE_DEVICE
                : CU_MEMORYTYPE_HOST;
    return true;
}

/* The driver's form of a 2D copy; an error if the pitches are too small. */
static cudaError_t form_2d(CUDA_MEMCPY2D *copy, void *to, size_t to_pitch, const void *from,
                           size_t from_pitch, size_t width, size_t height, enum cudaMemcpyKind kind)
{
    *copy = (CUDA_MEMCPY2D){
        .srcHost = from,
        .srcDevice = device(from),
        .srcPitch = from_pitch,
        .dstHost = to,
        .dstDevice = device(to),
        .dstPitch = to_pitch,
        .WidthInBytes = width,
        .Height = height,
    };
    if (!types_of(kind, &copy->dstMemoryType, &copy->srcMemoryType)) {
        return cudaErrorInvalidMemcpyDirection;
    }
    return width > to_pitch || width > from_pitch ? cudaErrorInvalidPitchValue : cudaSuccess;
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D copy;
    cudaError_t error = form_2d(&copy, to, to_pitch, from, from_pitch, width, height, kind);

    if (error != cudaSuccess) {
        return cudart_leave(error);
    }
    CUDART_FORWARD(cuMemcpy2DUnaligned, &copy);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    CUDA_MEMCPY2D copy;
    cudaError_t error = form_2d(&copy, to, to_pitch, from, from_pitch, width, height, kind);

    if (error != cudaSuccess) {
        return cudart_leave(error);
    }
    CUDART_FORWARD(cuMemcpy2DAsync, &copy, stream);
}

cudaError_t cudart_form_3d(const struct cudaMemcpy3DParms *given, CUDA_MEMCPY3D *copy)
{
    if (given == NULL) {
        return cudaErrorInvalidValue;
    }
    if (given->srcArray != NULL || given->dstArray != NULL) {
        return cudaErrorNotSupported;
    }
    *copy = (CUDA_MEMCPY3D){
        .srcXInBytes = given->srcPos.x,
        .srcY = given->srcPos.y,
        .srcZ = given->srcPos.z,
        .srcHost = given->srcPtr.ptr,
        .srcDevice = device(given->srcPtr.ptr),
        .srcPitch = given->srcPtr.pitch,
        .srcHeight = given->srcPtr.ysize,
        .dstXInBytes = given->dstPos.x,
        .dstY = given->dstPos.y,
        .dstZ = given->dstPos.z,
        .dstHost = given->dstPtr.ptr,
        .dstDevice = device(given->dstPtr.ptr),
        .dstPitch = given->dstPtr.pitch,
        .dstHeight = given->dstPtr.ysize,
        .WidthInBytes = given->extent.width,
        .Height = given->extent.height,
        .Depth = given->extent.depth,
    };
    return types_of(given->kind, &copy->dstMemoryType, &copy->srcMemoryType)
               ? cudaSuccess
               : cudaErrorInvalidMemcpyDirection;
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *given)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = cudart_form_3d(given, &copy);

    if (error != cudaSuccess) {
        return cudart_leave(error);
    }
    CUDART_FORWARD(cuMemcpy3D, &copy);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *given, cudaStream_t stream)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = cudart_form_3d(given, &copy);

    if (error != cudaSuccess) {
        return cudart_leave(error);
    }
    CUDART_FORWARD(cuMemcpy3DAsync, &copy, stream);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    CUDART_FORWARD(cuMemsetD8, device(to), (unsigned char)value, bytes);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    CUDART_FORWARD(cuMemsetD8Async, device(to), (unsigned char)value, bytes, stream);
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    CUDART_FORWARD(cuMemsetD2D8, device(to), pitch, (unsigned char)value, width, height);
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    CUDART_FORWARD(cuMemsetD2D8Async, device(to), pitch, (unsigned char)value, width, height,
                   stream);
}

/* Slice by slice. */
cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent)
{
    cudaError_t error = cudaSuccess;

    for (size_t z = 0; z < extent.depth && error == cudaSuccess; z++) {
        error = cudaMemset2D((char *)to.ptr + z * to.pitch * to.ysize, to.pitch, value,
                             extent.width, extent.height);
    }
    return error;
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
                              cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;

    for (size_t z = 0; z < extent.depth && error == cudaSuccess; z++) {
        error = cudaMemset2DAsync((char *)to.ptr + z * to.pitch * to.ysize, to.pitch, value,
                                  extent.width, extent.height, stream);
    }
    return error;
}
