// Trains a small image classifier: a chain of fully connected layers, softmax, SGD with momentum.
// Written as CUDA programs usually are: kernels of its own, one cudaMalloc per tensor, and a macro
// that checks calls. It knows nothing about libcapuchin.
//
//     classifier [STEPS]
//
// The images are made up: class c is a bright stripe at position c, with noise. Prints the loss of
// each step and a checksum of the weights. The macros CLASSIFIER_WIDTH and CLASSIFIER_LAYERS make
// it larger.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CUDA_CHECK(call)                                                     \
    do {                                                                     \
        cudaError_t error_ = (call);                                         \
        if (error_ != cudaSuccess) {                                         \
            fprintf(stderr, "CUDA error at %s:%d: %s\n", __FILE__, __LINE__, \
                    cudaGetErrorString(error_));                             \
            exit(EXIT_FAILURE);                                              \
        }                                                                    \
    } while (0)

#ifndef CLASSIFIER_WIDTH
#define CLASSIFIER_WIDTH 96
#endif
#ifndef CLASSIFIER_LAYERS
#define CLASSIFIER_LAYERS 6
#endif

const int kSide = 16;
const int kPixels = kSide * kSide;
const int kClasses = 10;
const int kBatch = 64;
const int kWidth = CLASSIFIER_WIDTH;
const int kLayers = CLASSIFIER_LAYERS;
const int kTile = 16;

// out[m][n] = a * b, or the transpose of either; added to what is there if `accumulate`.
template <bool TransposeA, bool TransposeB>
__global__ void matmul(float *out, const float *a, const float *b, int m, int n, int k)
{
    __shared__ float tile_a[kTile][kTile];
    __shared__ float tile_b[kTile][kTile + 1];
    int row = blockIdx.y * kTile + threadIdx.y;
    int column = blockIdx.x * kTile + threadIdx.x;
    float sum = 0.0f;

    for (int start = 0; start < k; start += kTile) {
        int i = start + threadIdx.x;
        int j = start + threadIdx.y;

        tile_a[threadIdx.y][threadIdx.x] =
            row < m && i < k ? (TransposeA ? a[i * m + row] : a[row * k + i]) : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] =
            j < k && column < n ? (TransposeB ? b[column * k + j] : b[j * n + column]) : 0.0f;
        __syncthreads();
        for (int inner = 0; inner < kTile; inner++) {
            sum += tile_a[threadIdx.y][inner] * tile_b[inner][threadIdx.x];
        }
        __syncthreads();
    }
    if (row < m && column < n) {
        out[row * n + column] = sum;
    }
}

// In place.
__global__ void add_bias(float *values, const float *bias, int rows, int columns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < rows * columns) {
        values[i] += bias[i % columns];
    }
}

__global__ void relu(float *out, const float *in, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        out[i] = in[i] > 0.0f ? in[i] : 0.0f;
    }
}

__global__ void relu_backward(float *gradient, const float *in, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count && in[i] <= 0.0f) {
        gradient[i] = 0.0f;
    }
}

// One warp per row.
__global__ void softmax_loss(float *probabilities, float *losses, const float *logits,
                             const int *labels, int columns)
{
    int row = blockIdx.x;
    int lane = threadIdx.x;
    float value = lane < columns ? logits[row * columns + lane] : -INFINITY;
    float largest = value;

    for (int offset = 16; offset > 0; offset /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, offset));
    }
    float exponential = lane < columns ? expf(value - largest) : 0.0f;
    float sum = exponential;
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffff, sum, offset);
    }
    if (lane < columns) {
        probabilities[row * columns + lane] = exponential / sum;
    }
    if (lane == labels[row]) {
        losses[row] = -logf(exponential / sum);
    }
}

__global__ void softmax_backward(float *gradient, const float *probabilities, const int *labels,
                                 int rows, int columns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < rows * columns) {
        float target = i % columns == labels[i / columns] ? 1.0f : 0.0f;

        gradient[i] = (probabilities[i] - target) / rows;
    }
}

// One thread per column.
__global__ void bias_backward(float *gradient, const float *values, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;

    if (column < columns) {
        for (int row = 0; row < rows; row++) {
            sum += values[row * columns + column];
        }
        gradient[column] = sum;
    }
}

// The mean, by one block.
__global__ void mean(float *out, const float *values, int count)
{
    extern __shared__ float partial[];
    float sum = 0.0f;

    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        sum += values[i];
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            partial[threadIdx.x] += partial[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        *out = partial[0] / count;
    }
}

__global__ void sgd(float *weights, float *velocity, const float *gradient, float rate,
                    float momentum, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        velocity[i] = momentum * velocity[i] + gradient[i];
        weights[i] -= rate * velocity[i];
    }
}

static uint32_t random_state = 1234567;

// Between -1 and 1.
static float random_value()
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) / 8388608.0f - 1.0f;
}

static int blocks(int count)
{
    return (count + 255) / 256;
}

static dim3 tiles(int rows, int columns)
{
    return dim3((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
}

static float *allocate(int count)
{
    float *data;

    CUDA_CHECK(cudaMalloc(&data, count * sizeof(float)));
    return data;
}

struct Layer {
    int inputs, outputs;
    float *weights, *bias; // weights[inputs][outputs]
    float *weight_velocity, *bias_velocity;
    float *weight_gradient, *bias_gradient;
    float *sums, *values; // before and after the activation
    float *gradient;      // of the sums
};

static Layer make_layer(int inputs, int outputs)
{
    Layer layer = {inputs, outputs};
    std::vector<float> initial(inputs * outputs);
    float scale = sqrtf(3.0f / inputs);

    for (float &value : initial) {
        value = scale * random_value();
    }
    layer.weights = allocate(inputs * outputs);
    layer.bias = allocate(outputs);
    layer.weight_velocity = allocate(inputs * outputs);
    layer.bias_velocity = allocate(outputs);
    layer.weight_gradient = allocate(inputs * outputs);
    layer.bias_gradient = allocate(outputs);
    layer.sums = allocate(kBatch * outputs);
    layer.values = allocate(kBatch * outputs);
    layer.gradient = allocate(kBatch * outputs);
    CUDA_CHECK(cudaMemcpy(layer.weights, initial.data(), initial.size() * sizeof(float),
                          cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(layer.bias, 0, outputs * sizeof(float)));
    CUDA_CHECK(cudaMemset(layer.weight_velocity, 0, inputs * outputs * sizeof(float)));
    CUDA_CHECK(cudaMemset(layer.bias_velocity, 0, outputs * sizeof(float)));
    return layer;
}

static void free_layer(const Layer &layer)
{
    float *const tensors[] = {layer.weights,
                              layer.bias,
                              layer.weight_velocity,
                              layer.bias_velocity,
                              layer.weight_gradient,
                              layer.bias_gradient,
                              layer.sums,
                              layer.values,
                              layer.gradient};

    for (float *tensor : tensors) {
        CUDA_CHECK(cudaFree(tensor));
    }
}

static void make_batch(std::vector<float> &images, std::vector<int> &labels)
{
    for (int image = 0; image < kBatch; image++) {
        labels[image] = (image * 7 + 3) % kClasses;
        for (int pixel = 0; pixel < kPixels; pixel++) {
            float stripe = pixel % kSide == labels[image] ? 1.0f : 0.0f;

            images[image * kPixels + pixel] = stripe + 0.25f * random_value();
        }
    }
}

static void forward(std::vector<Layer> &layers, const float *images)
{
    const float *input = images;

    for (size_t i = 0; i < layers.size(); i++) {
        Layer &layer = layers[i];
        int count = kBatch * layer.outputs;

        matmul<false, false><<<tiles(kBatch, layer.outputs), dim3(kTile, kTile)>>>(
            layer.sums, input, layer.weights, kBatch, layer.outputs, layer.inputs);
        add_bias<<<blocks(count), 256>>>(layer.sums, layer.bias, kBatch, layer.outputs);
        relu<<<blocks(count), 256>>>(layer.values, layer.sums, count);
        input = layer.values;
    }
    CUDA_CHECK(cudaGetLastError());
}

static void backward(std::vector<Layer> &layers, const float *images)
{
    for (size_t i = layers.size(); i-- > 0;) {
        Layer &layer = layers[i];
        const float *input = i > 0 ? layers[i - 1].values : images;

        matmul<true, false><<<tiles(layer.inputs, layer.outputs), dim3(kTile, kTile)>>>(
            layer.weight_gradient, input, layer.gradient, layer.inputs, layer.outputs, kBatch);
        bias_backward<<<blocks(layer.outputs), 256>>>(layer.bias_gradient, layer.gradient, kBatch,
                                                      layer.outputs);
        if (i > 0) {
            matmul<false, true><<<tiles(kBatch, layer.inputs), dim3(kTile, kTile)>>>(
                layers[i - 1].gradient, layer.gradient, layer.weights, kBatch, layer.inputs,
                layer.outputs);
            relu_backward<<<blocks(kBatch * layer.inputs), 256>>>(
                layers[i - 1].gradient, layers[i - 1].sums, kBatch * layer.inputs);
        }
    }
    CUDA_CHECK(cudaGetLastError());
}

static void update(std::vector<Layer> &layers)
{
    const float rate = 0.1f;
    const float momentum = 0.9f;

    for (Layer &layer : layers) {
        int count = layer.inputs * layer.outputs;

        sgd<<<blocks(count), 256>>>(layer.weights, layer.weight_velocity, layer.weight_gradient,
                                    rate, momentum, count);
        sgd<<<blocks(layer.outputs), 256>>>(layer.bias, layer.bias_velocity, layer.bias_gradient,
                                            rate, momentum, layer.outputs);
    }
    CUDA_CHECK(cudaGetLastError());
}

// FNV-1a over the bytes of all weights.
static uint64_t checksum(const std::vector<Layer> &layers)
{
    uint64_t hash = 14695981039346656037ull;

    for (const Layer &layer : layers) {
        std::vector<float> weights(layer.inputs * layer.outputs);

        CUDA_CHECK(cudaMemcpy(weights.data(), layer.weights, weights.size() * sizeof(float),
                              cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < weights.size() * sizeof(float); i++) {
            hash = (hash ^ reinterpret_cast<const unsigned char *>(weights.data())[i]) *
                   1099511628211ull;
        }
    }
    return hash;
}

int main(int count, char **arguments)
{
    int steps = count > 1 ? atoi(arguments[1]) : 6;
    std::vector<Layer> layers;
    std::vector<float> images(kBatch * kPixels);
    std::vector<int> labels(kBatch);

    for (int i = 0; i < kLayers; i++) {
        layers.push_back(
            make_layer(i == 0 ? kPixels : kWidth, i == kLayers - 1 ? kClasses : kWidth));
    }
    float *device_images = allocate(kBatch * kPixels);
    float *probabilities = allocate(kBatch * kClasses);
    float *losses = allocate(kBatch);
    float *loss = allocate(1);
    int *device_labels;
    CUDA_CHECK(cudaMalloc(&device_labels, kBatch * sizeof(int)));

    for (int step = 1; step <= steps; step++) {
        Layer &last = layers.back();
        float result;

        make_batch(images, labels);
        CUDA_CHECK(cudaMemcpy(device_images, images.data(), images.size() * sizeof(float),
                              cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemcpy(device_labels, labels.data(), labels.size() * sizeof(int),
                              cudaMemcpyHostToDevice));
        forward(layers, device_images);
        softmax_loss<<<kBatch, 32>>>(probabilities, losses, last.sums, device_labels, kClasses);
        mean<<<1, 32, 32 * sizeof(float)>>>(loss, losses, kBatch);
        softmax_backward<<<blocks(kBatch * kClasses), 256>>>(last.gradient, probabilities,
                                                             device_labels, kBatch, kClasses);
        backward(layers, device_images);
        update(layers);
        CUDA_CHECK(cudaDeviceSynchronize());
        CUDA_CHECK(cudaMemcpy(&result, loss, sizeof(result), cudaMemcpyDeviceToHost));
        printf("step %d: loss %.6f\n", step, result);
    }
    printf("weights %016llx\n", static_cast<unsigned long long>(checksum(layers)));
    for (const Layer &layer : layers) {
        free_layer(layer);
    }
    CUDA_CHECK(cudaFree(device_images));
    CUDA_CHECK(cudaFree(probabilities));
    CUDA_CHECK(cudaFree(losses));
    CUDA_CHECK(cudaFree(loss));
    CUDA_CHECK(cudaFree(device_labels));
    CUDA_CHECK(cudaDeviceReset());
    return 0;
}
