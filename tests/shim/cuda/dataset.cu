// Training on data that is on the device as a whole.
//
//     dataset
//
// Each step takes the next rows of the data and of its targets, by pointers into two allocations,
// and copies a part of a third one, in an order that repeats only after all steps. Layers are
// products of vectors, with their weights in one allocation that each step changes.
#include "tests/shim/cuda/traps_grid.cuh"
#include "tests/shim/cuda/traps_memory.cuh"

#include <cstdio>
#include <cuda_runtime.h>
#include <vector>

const int kLayers = 6;
const int kWidth = 8192;
const int kSteps = 150;
const int kRowStride = 128; // of two rows, which overlap

__global__ void forward(float *out, const float *in, const float *weights)
{
    int i = global_index();

    out[i] = fmaxf(__fmul_rn(in[i], weights[i]), -1.0f);
}

__global__ void difference(float *gradient, const float *out, const float *targets)
{
    int i = global_index();

    gradient[i] = __fmul_rn(out[i] - targets[i], 0.125f);
}

__global__ void backward(float *below, float *changes, const float *gradient, const float *in,
                         const float *weights)
{
    int i = global_index();

    changes[i] = __fmul_rn(gradient[i], in[i]);
    below[i] = __fmul_rn(gradient[i], weights[i]);
}

__global__ void update(float *weights, const float *changes)
{
    int i = global_index();

    weights[i] = weights[i] - changes[i];
}

static float *weights, *data, *targets, *noise, *noise_now;
static float *outputs[kLayers], *changes[kLayers], *gradients[kLayers + 1];

static const float *input_of(int layer, const float *rows)
{
    return layer == 0 ? rows : outputs[layer - 1];
}

static void step(const float *rows, const float *wanted, const float *disturbed)
{
    const int blocks = kWidth / kThreads;

    CUDA_CHECK(cudaMemcpyAsync(noise_now, disturbed, kWidth * sizeof(float),
                               cudaMemcpyDeviceToDevice, nullptr));
    update<<<blocks, kThreads>>>(weights, noise_now);
    for (int i = 0; i < kLayers; i++) {
        forward<<<blocks, kThreads>>>(outputs[i], input_of(i, rows), weights + i * kWidth);
    }
    difference<<<blocks, kThreads>>>(gradients[kLayers], outputs[kLayers - 1], wanted);
    for (int i = kLayers; i-- > 0;) {
        backward<<<blocks, kThreads>>>(gradients[i], changes[i], gradients[i + 1],
                                       input_of(i, rows), weights + i * kWidth);
    }
    for (int i = 0; i < kLayers; i++) {
        update<<<blocks, kThreads>>>(weights + i * kWidth, changes[i]);
    }
}

static float *uploaded(int seed, int count)
{
    float *memory = device<float>(count);
    std::vector<float> values = made_up(count, seed);

    CUDA_CHECK(cudaMemcpy(memory, values.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    return memory;
}

int main()
{
    const int rows = kWidth + kSteps * kRowStride;

    data = uploaded(1, rows);
    targets = uploaded(2, rows);
    noise = uploaded(4, rows);
    noise_now = device<float>(kWidth);
    weights = uploaded(3, kLayers * kWidth);
    for (int i = 0; i < kLayers; i++) {
        outputs[i] = device<float>(kWidth);
        changes[i] = device<float>(kWidth);
    }
    for (int i = 0; i <= kLayers; i++) {
        gradients[i] = device<float>(kWidth);
    }
    for (int i = 0; i < kSteps; i++) {
        step(data + i * kRowStride, targets + i * kRowStride, noise + i * kRowStride);
        if (i == 50 || i == kSteps - 1) {
            show("weights", weights, kLayers * kWidth * sizeof(float));
        }
    }
    return 0;
}
