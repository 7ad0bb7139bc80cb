// Memory of the traps, and what is printed of it.
#ifndef TRAPS_MEMORY_CUH
#define TRAPS_MEMORY_CUH

#include "tests/shim/cuda/traps_grid.cuh"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CUDA_CHECK(call)                                                                          \
    do {                                                                                          \
        cudaError_t error_ = (call);                                                              \
        if (error_ != cudaSuccess) {                                                              \
            fprintf(stderr, "CUDA error at line %d: %s\n", __LINE__, cudaGetErrorString(error_)); \
            exit(EXIT_FAILURE);                                                                   \
        }                                                                                         \
    } while (0)

const int kSide = 128;
const int kCount = kSide * kSide;
const size_t kBytes = kCount * sizeof(float);
const int kBlocks = kCount / kThreads;

struct Result {
    const char *name;
    const void *memory;
    size_t bytes;
};

static std::vector<Result> results;

static void print_result(const Result &result)
{
    std::vector<unsigned char> bytes(result.bytes);
    uint64_t hash = 1469598103934665603u;

    CUDA_CHECK(cudaMemcpy(bytes.data(), result.memory, result.bytes, cudaMemcpyDeviceToHost));
    for (unsigned char byte : bytes) {
        hash = (hash ^ byte) * 1099511628211u;
    }
    printf("%s %016llx\n", result.name, static_cast<unsigned long long>(hash));
}

static void show(const char *name, const void *memory, size_t bytes = kBytes)
{
    CUDA_CHECK(cudaGetLastError());
    results.push_back({name, memory, bytes});
    print_result(results.back());
}

static std::vector<float> made_up(int count, int seed)
{
    std::vector<float> values(count);

    for (int i = 0; i < count; i++) {
        values[i] = static_cast<float>((i * 31 + seed * 17) % 211) / 50.0f - 2.0f;
    }
    return values;
}

template <typename T> static T *device(size_t count)
{
    T *memory;

    CUDA_CHECK(cudaMalloc(&memory, count * sizeof(T)));
    return memory;
}

template <typename T> static T *pinned(size_t count)
{
    T *memory;

    CUDA_CHECK(cudaMallocHost(&memory, count * sizeof(T)));
    return memory;
}

static float *input(int seed, int count = kCount)
{
    float *memory = device<float>(count);

    CUDA_CHECK(cudaMemcpy(memory, made_up(count, seed).data(), count * sizeof(float),
                          cudaMemcpyHostToDevice));
    return memory;
}

static float *filled(int byte)
{
    float *memory = device<float>(kCount);

    CUDA_CHECK(cudaMemset(memory, byte, kBytes));
    return memory;
}

#endif
