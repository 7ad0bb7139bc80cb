/* The CUDA calls of gpu_facts over the fake runtime, see include/cuda_runtime.h. */
#include <cuda_runtime.h>
#undef cudaGetDriverEntryPointByVersion

extern "C" {
#include "tests/fake_cudart/fake_cudart.h"
}

#include <cstring>
#include <ctime>
#include <list>
#include <map>
#include <mutex>

struct block {
    size_t bytes;
    CUmemGenericAllocationHandle handle;
};

static std::mutex lock; /* guards `blocks` */
static std::map<CUdeviceptr, block> blocks;

/* A page of the fake machine is 2 MIB, where MIB is the small unit of cuda_runtime.h. */
__attribute__((constructor)) static void make_machine(void)
{
    fake_cudart_machine machine = {};

    machine.memory_bytes = (uint64_t)256 << 20;
    machine.granularity_bytes = 2 * MIB;
    fake_cudart_reset(&machine);
}

static std::list<std::function<void()>> captured; /* runs at each launch of its graph */

static int run(void *, const void *work)
{
    (*(const std::function<void()> *)work)();
    return 0;
}

static int run_once(void *stream, const void *work)
{
    run(stream, work);
    delete (const std::function<void()> *)work;
    return 0;
}

void facts_fake_launch(cudaStream_t stream, const std::function<void()> &work)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

    cudaStreamIsCapturing(stream, &status);
    if (status == cudaStreamCaptureStatusNone) {
        (void)fake_cudart_launch(stream, (capu_run_function)run_once,
                                 new std::function<void()>(work));
        return;
    }
    captured.push_back(work);
    (void)fake_cudart_launch(stream, (capu_run_function)run, &captured.back());
}

uint64_t facts_fake_ns(void)
{
    timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

cudaError_t cudaMalloc(void **address, size_t bytes)
{
    CUmemAllocationProp property = {};
    CUmemAccessDesc access = {};
    CUdeviceptr at = 0;
    block made = {(bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB), 0};

    property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location = property.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (cuMemCreate(&made.handle, made.bytes, &property, 0) != CUDA_SUCCESS) {
        return cudaErrorMemoryAllocation;
    }
    if (cuMemAddressReserve(&at, made.bytes, 0, 0, 0) != CUDA_SUCCESS ||
        cuMemMap(at, made.bytes, 0, made.handle, 0) != CUDA_SUCCESS ||
        cuMemSetAccess(at, made.bytes, &access, 1) != CUDA_SUCCESS) {
        cuMemRelease(made.handle);
        return cudaErrorMemoryAllocation;
    }
    lock.lock();
    blocks[at] = made;
    lock.unlock();
    *address = (void *)(uintptr_t)at;
    return cudaSuccess;
}

cudaError_t cudaFree(void *address)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)address;
    block found;

    if (address == NULL) {
        return cudaSuccess;
    }
    cudaDeviceSynchronize();
    lock.lock();
    found = blocks[at];
    blocks.erase(at);
    lock.unlock();
    cuMemUnmap(at, found.bytes);
    cuMemAddressFree(at, found.bytes);
    cuMemRelease(found.handle);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    cudaStream_t stream = NULL;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

    if (error == cudaSuccess) {
        error = cudaMemcpyAsync(to, from, bytes, kind, stream);
        cudaStreamSynchronize(stream);
        cudaStreamDestroy(stream);
    }
    return error;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
    *properties = {};
    strcpy(properties->name, "a fake");
    properties->multiProcessorCount = 1;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 0;
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    facts_fake_launch(stream, [=] { function(argument); });
    return cudaSuccess;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = cudaGetErrorName((cudaError_t)error);
    return CUDA_SUCCESS;
}

cudaError_t facts_fake_entry(const char *symbol, void **entry, unsigned version,
                             unsigned long long flags, cudaDriverEntryPointQueryResult *answer)
{
    if (strcmp(symbol, "cuGetErrorName") == 0) {
        *entry = (void *)cuGetErrorName;
        return cudaSuccess;
    }
    return cudaGetDriverEntryPointByVersion(symbol, entry, version, flags, answer);
}
