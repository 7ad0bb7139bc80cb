/*
 * The part of CUDA that gpu_facts needs, over the fake runtime. Memory consists of the fake's
 * handles, and a launch runs one thread of the kernel on the stream's thread. A "mebibyte" is only
 * 4 KiB, so that what takes gigabytes on a GPU takes megabytes here.
 */
#ifndef CAPU_TESTS_GPU_CHECK_CUDA_RUNTIME_H
#define CAPU_TESTS_GPU_CHECK_CUDA_RUNTIME_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>

extern "C" {
#include <cuda_runtime_api.h>
}

#define FACTS_ON_FAKE
#define MIB ((size_t)1 << 12)
#define PRODUCT_SIDE ((size_t)64)
#define __global__
#define __device__
#define CUDART_CB

static const dim3 blockIdx = {0};
static const dim3 threadIdx = {0};
static const dim3 gridDim = {1};

struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
};

static inline void atomicAdd(unsigned long long *sum, unsigned long long value)
{
    *sum += value;
}

/* Runs the work when the stream reaches it. */
void facts_fake_launch(cudaStream_t stream, const std::function<void()> &work);
uint64_t facts_fake_ns(void);

#define FACTS_LAUNCH(kernel, blocks, threads, stream, ...)                     \
    facts_fake_launch(stream, [arguments_ = std::make_tuple(__VA_ARGS__)] {    \
        std::apply([](auto... argument) { kernel(argument...); }, arguments_); \
    })

#define cudaHostAllocDefault 0
#define cudaHostRegisterDefault 0

cudaError_t facts_fake_entry(const char *symbol, void **entry, unsigned version,
                             unsigned long long flags, cudaDriverEntryPointQueryResult *answer);
#define cudaGetDriverEntryPointByVersion facts_fake_entry

#endif
