// A program with one allocation that it divides itself, as allocators that cache do: small parts
// come before large ones, and freed parts are used again in other sizes. Each step looks rows of a
// table up, and adds gradients to rows of another one, by indices in the same allocation. Moments
// of the gradients are in an allocation of their own, so that each of the two fits budgets that
// both do not. The host looks at another moment after each step.
//
//     arena
//
// Prints checksums of the table every fourth step, and of the first half of the allocation at the
// end.
#include "tests/shim/cuda/traps_grid.cuh"
#include "tests/shim/cuda/traps_memory.cuh"

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <iterator>
#include <map>
#include <vector>

const size_t kArenaBytes = 6 << 20;
const int kRows = 4000;
const int kWidth = 64;
const int kLookups = 512;
const int kLayers = 8;
const int kMoments = 3;
const int kSteps = 14;

__global__ void fill_numbers(float *out, float base, int count)
{
    int i = global_index();

    if (i < count) {
        out[i] = base + static_cast<float>(i % 13);
    }
}

__global__ void add_scaled(float *out, const float *in, float factor, int count)
{
    int i = global_index();

    if (i < count) {
        out[i] = __fadd_rn(out[i], __fmul_rn(factor, in[i]));
    }
}

__global__ void look_up(float *out, const float *table, const int *indices, int count)
{
    int i = global_index();

    if (i < count) {
        out[i] = table[static_cast<size_t>(indices[i / kWidth]) * kWidth + i % kWidth];
    }
}

__global__ void add_rows(float *table, const float *in, const int *indices, int count)
{
    int i = global_index();

    if (i < count) {
        atomicAdd(&table[static_cast<size_t>(indices[i / kWidth]) * kWidth + i % kWidth], in[i]);
    }
}

static char *arena;
static std::map<size_t, size_t> free_parts; // offset to bytes
static std::map<size_t, size_t> used_parts;

static float *take(size_t count)
{
    size_t bytes = (count * sizeof(float) + 511) / 512 * 512;

    for (auto part = free_parts.begin(); part != free_parts.end(); ++part) {
        size_t offset = part->first;
        size_t rest = part->second - bytes;

        if (part->second < bytes) {
            continue;
        }
        free_parts.erase(part);
        if (rest > 0) {
            free_parts[offset + bytes] = rest;
        }
        used_parts[offset] = bytes;
        return reinterpret_cast<float *>(arena + offset);
    }
    fprintf(stderr, "the arena is full\n");
    exit(EXIT_FAILURE);
}

static void give(void *memory)
{
    size_t offset = static_cast<size_t>(static_cast<char *>(memory) - arena);
    auto part = free_parts.emplace(offset, used_parts[offset]).first;
    auto next = std::next(part);

    used_parts.erase(offset);
    if (next != free_parts.end() && part->first + part->second == next->first) {
        part->second += next->second;
        free_parts.erase(next);
    }
    if (part != free_parts.begin() &&
        std::prev(part)->first + std::prev(part)->second == part->first) {
        std::prev(part)->second += part->second;
        free_parts.erase(part);
    }
}

static unsigned blocks(int count)
{
    return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

static void step(int number, float *table, float *gradients, float *moments, int *indices)
{
    const int count = kLookups * kWidth;
    static unsigned random = 3;
    float *layers[kLayers], *difference, seen;
    std::vector<int> rows(kLookups);

    for (int &row : rows) {
        random = random * 1664525u + 1013904223u;
        row = static_cast<int>((random >> 8) % kRows);
    }
    CUDA_CHECK(cudaMemcpy(indices, rows.data(), kLookups * sizeof(int), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(gradients, 0, kRows * kWidth * sizeof(float)));
    layers[0] = take(count);
    look_up<<<blocks(count), kThreads>>>(layers[0], table, indices, count);
    for (int i = 1; i < kLayers; i++) {
        int more = count * (1 + i % 3);

        layers[i] = take(more);
        fill_numbers<<<blocks(more), kThreads>>>(layers[i], static_cast<float>(i), more);
        add_scaled<<<blocks(count), kThreads>>>(layers[i], layers[i - 1], 0.5f, count);
    }
    difference = take(count);
    fill_numbers<<<blocks(count), kThreads>>>(difference, 0.001f * number, count);
    for (int i = kLayers - 1; i >= 0; i--) {
        add_scaled<<<blocks(count), kThreads>>>(difference, layers[i], 0.1f, count);
        give(layers[i]);
    }
    add_rows<<<blocks(count), kThreads>>>(gradients, difference, indices, count);
    for (int i = 0; i < kMoments; i++) {
        float *moment = moments + static_cast<size_t>(i) * kRows * kWidth;

        add_scaled<<<blocks(kRows * kWidth), kThreads>>>(moment, gradients, 0.1f, kRows * kWidth);
        add_scaled<<<blocks(kRows * kWidth), kThreads>>>(table, moment, -0.01f, kRows * kWidth);
    }
    give(difference);
    CUDA_CHECK(cudaMemcpy(&seen, moments + (random >> 8) % (kMoments * kRows * kWidth),
                          sizeof(seen), cudaMemcpyDeviceToHost));
    printf("step %d: %.9g\n", number, seen);
}

int main()
{
    const int count = kRows * kWidth;
    float *table, *gradients, *moments;
    int *indices;

    CUDA_CHECK(cudaMalloc(&arena, kArenaBytes));
    free_parts[0] = kArenaBytes;
    CUDA_CHECK(cudaMalloc(&moments, kMoments * count * sizeof(float)));
    CUDA_CHECK(cudaMemset(moments, 0, kMoments * count * sizeof(float)));
    table = take(count);
    gradients = take(count);
    indices = reinterpret_cast<int *>(take(kLookups));
    fill_numbers<<<blocks(count), kThreads>>>(table, 0.5f, count);
    for (int i = 0; i < kSteps; i++) {
        step(i, table, gradients, moments, indices);
        if (i % 4 == 3) {
            show("table", table, count * sizeof(float));
        }
    }
    show("arena", arena, kArenaBytes / 2);
    return 0;
}
