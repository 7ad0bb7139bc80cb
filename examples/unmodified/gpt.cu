// Trains a small GPT on a made-up sequence, as CUDA programs usually do it: all parameters are in
// one allocation, and so are their gradients, the moments of AdamW, the activations, and the
// gradients of activations; products of matrices are cuBLAS calls. It knows nothing about
// libcapuchin.
//
//     gpt [STEPS]
//
// Prints the loss of each step and a checksum of the parameters. The macros GPT_BATCH, GPT_LENGTH,
// GPT_CHANNELS, GPT_HEADS and GPT_LAYERS make it larger.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <vector>

#include "examples/unmodified/gpt_kernels.cuh"

#define CUDA_CHECK(call)                                                             \
    do {                                                                             \
        cudaError_t error_ = (call);                                                 \
        if (error_ != cudaSuccess) {                                                 \
            fprintf(stderr, "[CUDA ERROR] at file %s:%d:\n%s\n", __FILE__, __LINE__, \
                    cudaGetErrorString(error_));                                     \
            exit(EXIT_FAILURE);                                                      \
        }                                                                            \
    } while (0)

#define CUBLAS_CHECK(call)                                                            \
    do {                                                                              \
        cublasStatus_t status_ = (call);                                              \
        if (status_ != CUBLAS_STATUS_SUCCESS) {                                       \
            fprintf(stderr, "[cuBLAS ERROR] at file %s:%d: %s\n", __FILE__, __LINE__, \
                    cublasGetStatusString(status_));                                  \
            exit(EXIT_FAILURE);                                                       \
        }                                                                             \
    } while (0)

#ifndef GPT_BATCH
#define GPT_BATCH 4
#endif
#ifndef GPT_LENGTH
#define GPT_LENGTH 32
#endif
#ifndef GPT_CHANNELS
#define GPT_CHANNELS 48
#endif
#ifndef GPT_HEADS
#define GPT_HEADS 3
#endif
#ifndef GPT_LAYERS
#define GPT_LAYERS 2
#endif

const int kBatch = GPT_BATCH;
const int kLength = GPT_LENGTH;
const int kRows = kBatch * kLength;
const int kChannels = GPT_CHANNELS;
const int kHeads = GPT_HEADS;
const int kHead = kChannels / kHeads;
const int kLayers = GPT_LAYERS;
const int kVocabulary = 64;
const float kScale = 1.0f / sqrtf(kHead); // of scores

static cublasHandle_t cublas;
static cudaStream_t stream;

// ------------------------------------------------------------------------------------- allocations

struct LayerParameters {
    float *ln1_weight, *ln1_bias, *qkv_weight, *qkv_bias, *projection_weight, *projection_bias;
    float *ln2_weight, *ln2_bias, *up_weight, *up_bias, *down_weight, *down_bias;
};

struct Parameters {
    float *wte, *wpe;
    LayerParameters layers[kLayers];
    float *lnf_weight, *lnf_bias;
};

struct LayerActivations {
    float *ln1, *ln1_mean, *ln1_scale, *qkv, *q, *k, *v, *scores, *attention, *values, *joined;
    float *projected, *middle, *ln2, *ln2_mean, *ln2_scale, *up, *active, *down, *out;
};

struct Activations {
    float *embedded;
    LayerActivations layers[kLayers];
    float *lnf, *lnf_mean, *lnf_scale, *logits, *losses;
};

// What backward needs, used by all layers.
struct Gradients {
    float *residual, *channels, *wide, *qkv, *q, *k, *v, *values, *attention, *scores;
};

// Hands out parts of an allocation; without one, counts only.
struct Blob {
    float *base;
    size_t count;

    void part(float **out, size_t elements)
    {
        *out = base != nullptr ? base + count : nullptr;
        count += elements;
    }
};

static void lay_out(Blob &blob, Parameters &p)
{
    const int c = kChannels;

    blob.part(&p.wte, kVocabulary * c);
    blob.part(&p.wpe, kLength * c);
    for (LayerParameters &layer : p.layers) {
        blob.part(&layer.ln1_weight, c);
        blob.part(&layer.ln1_bias, c);
        blob.part(&layer.qkv_weight, 3 * c * c);
        blob.part(&layer.qkv_bias, 3 * c);
        blob.part(&layer.projection_weight, c * c);
        blob.part(&layer.projection_bias, c);
        blob.part(&layer.ln2_weight, c);
        blob.part(&layer.ln2_bias, c);
        blob.part(&layer.up_weight, 4 * c * c);
        blob.part(&layer.up_bias, 4 * c);
        blob.part(&layer.down_weight, 4 * c * c);
        blob.part(&layer.down_bias, c);
    }
    blob.part(&p.lnf_weight, c);
    blob.part(&p.lnf_bias, c);
}

static void lay_out(Blob &blob, Activations &a)
{
    const int n = kRows * kChannels;
    const int squares = kBatch * kHeads * kLength * kLength;

    blob.part(&a.embedded, n);
    for (LayerActivations &layer : a.layers) {
        blob.part(&layer.ln1, n);
        blob.part(&layer.ln1_mean, kRows);
        blob.part(&layer.ln1_scale, kRows);
        blob.part(&layer.qkv, 3 * n);
        blob.part(&layer.q, n);
        blob.part(&layer.k, n);
        blob.part(&layer.v, n);
        blob.part(&layer.scores, squares);
        blob.part(&layer.attention, squares);
        blob.part(&layer.values, n);
        blob.part(&layer.joined, n);
        blob.part(&layer.projected, n);
        blob.part(&layer.middle, n);
        blob.part(&layer.ln2, n);
        blob.part(&layer.ln2_mean, kRows);
        blob.part(&layer.ln2_scale, kRows);
        blob.part(&layer.up, 4 * n);
        blob.part(&layer.active, 4 * n);
        blob.part(&layer.down, n);
        blob.part(&layer.out, n);
    }
    blob.part(&a.lnf, n);
    blob.part(&a.lnf_mean, kRows);
    blob.part(&a.lnf_scale, kRows);
    blob.part(&a.logits, kRows * kVocabulary);
    blob.part(&a.losses, kRows);
}

static void lay_out(Blob &blob, Gradients &g)
{
    const int n = kRows * kChannels;
    const int squares = kBatch * kHeads * kLength * kLength;

    blob.part(&g.residual, n);
    blob.part(&g.channels, n);
    blob.part(&g.wide, 4 * n);
    blob.part(&g.qkv, 3 * n);
    blob.part(&g.q, n);
    blob.part(&g.k, n);
    blob.part(&g.v, n);
    blob.part(&g.values, n);
    blob.part(&g.attention, squares);
    blob.part(&g.scores, squares);
}

// Allocates a blob of zeros for a struct of pointers, and returns its number of elements.
template <typename Struct> static size_t allocate(Struct &parts, float **base)
{
    Blob blob = {nullptr, 0};

    lay_out(blob, parts);
    CUDA_CHECK(cudaMalloc(base, blob.count * sizeof(float)));
    CUDA_CHECK(cudaMemset(*base, 0, blob.count * sizeof(float)));
    blob = {*base, 0};
    lay_out(blob, parts);
    return blob.count;
}

// ----------------------------------------------------------------------------------------- passes

static int blocks(int count)
{
    return (count + 127) / 128;
}

// out[rows][outputs] = in[rows][inputs] * weight[outputs][inputs] + bias
static void linear(float *out, const float *in, const float *weight, const float *bias, int inputs,
                   int outputs)
{
    const float one = 1.0f;
    const float zero = 0.0f;

    CUBLAS_CHECK(cublasSgemm(cublas, CUBLAS_OP_T, CUBLAS_OP_N, outputs, kRows, inputs, &one, weight,
                             inputs, in, inputs, &zero, out, outputs));
    if (bias != nullptr) {
        add_bias<<<blocks(kRows * outputs), 128, 0, stream>>>(out, bias, outputs, kRows * outputs);
    }
}

static void linear_backward(float *din, float *dweight, float *dbias, const float *dout,
                            const float *in, const float *weight, int inputs, int outputs)
{
    const float one = 1.0f;
    const float zero = 0.0f;

    CUBLAS_CHECK(cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_T, inputs, outputs, kRows, &one, in,
                             inputs, dout, outputs, &zero, dweight, inputs));
    CUBLAS_CHECK(cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, inputs, kRows, outputs, &one, weight,
                             inputs, dout, outputs, &zero, din, inputs));
    if (dbias != nullptr) {
        bias_backward<<<blocks(outputs), 128, 0, stream>>>(dbias, dout, kRows, outputs);
    }
}

// One product per head: out = scale * op(a) * op(b), in the order of columns that cuBLAS has.
static void per_head(float *out, cublasOperation_t a_operation, cublasOperation_t b_operation,
                     int m, int n, int k, float scale, const float *a, int lda, const float *b,
                     int ldb)
{
    const float zero = 0.0f;
    const long long vectors = kLength * kHead;
    const long long squares = kLength * kLength;

    CUBLAS_CHECK(cublasSgemmStridedBatched(cublas, a_operation, b_operation, m, n, k, &scale, a,
                                           lda, lda == kHead ? vectors : squares, b, ldb,
                                           ldb == kHead ? vectors : squares, &zero, out, m,
                                           m == kHead ? vectors : squares, kBatch * kHeads));
}

static void forward(const Parameters &p, Activations &a, const int *tokens)
{
    const int n = kRows * kChannels;
    const int rows = kBatch * kHeads * kLength;
    const float *residual = a.embedded;

    embed<<<blocks(n), 128, 0, stream>>>(a.embedded, tokens, p.wte, p.wpe, kLength, kChannels, n);
    for (int i = 0; i < kLayers; i++) {
        const LayerParameters &w = p.layers[i];
        LayerActivations &l = a.layers[i];

        layer_norm<<<kRows, 32, 0, stream>>>(l.ln1, l.ln1_mean, l.ln1_scale, residual, w.ln1_weight,
                                             w.ln1_bias, kChannels);
        linear(l.qkv, l.ln1, w.qkv_weight, w.qkv_bias, kChannels, 3 * kChannels);
        split_heads<<<blocks(n), 128, 0, stream>>>(l.q, l.k, l.v, l.qkv, kLength, kHeads, kHead, n);
        per_head(l.scores, CUBLAS_OP_T, CUBLAS_OP_N, kLength, kLength, kHead, kScale, l.k, kHead,
                 l.q, kHead);
        softmax_causal<<<blocks(rows), 128, 0, stream>>>(l.attention, l.scores, kLength, rows);
        per_head(l.values, CUBLAS_OP_N, CUBLAS_OP_N, kHead, kLength, kLength, 1.0f, l.v, kHead,
                 l.attention, kLength);
        join_heads<<<blocks(n), 128, 0, stream>>>(l.joined, l.values, kLength, kHeads, kHead, n,
                                                  false);
        linear(l.projected, l.joined, w.projection_weight, w.projection_bias, kChannels, kChannels);
        add<<<blocks(n), 128, 0, stream>>>(l.middle, residual, l.projected, n);
        layer_norm<<<kRows, 32, 0, stream>>>(l.ln2, l.ln2_mean, l.ln2_scale, l.middle, w.ln2_weight,
                                             w.ln2_bias, kChannels);
        linear(l.up, l.ln2, w.up_weight, w.up_bias, kChannels, 4 * kChannels);
        gelu<<<blocks(4 * n), 128, 0, stream>>>(l.active, l.up, 4 * n);
        linear(l.down, l.active, w.down_weight, w.down_bias, 4 * kChannels, kChannels);
        add<<<blocks(n), 128, 0, stream>>>(l.out, l.middle, l.down, n);
        residual = l.out;
    }
    layer_norm<<<kRows, 32, 0, stream>>>(a.lnf, a.lnf_mean, a.lnf_scale, residual, p.lnf_weight,
                                         p.lnf_bias, kChannels);
    linear(a.logits, a.lnf, p.wte, nullptr, kChannels, kVocabulary);
    CUDA_CHECK(cudaGetLastError());
}

static void attention_backward(LayerActivations &l, Gradients &g)
{
    const int n = kRows * kChannels;
    const int rows = kBatch * kHeads * kLength;

    join_heads<<<blocks(n), 128, 0, stream>>>(g.values, g.channels, kLength, kHeads, kHead, n,
                                              true);
    per_head(g.attention, CUBLAS_OP_T, CUBLAS_OP_N, kLength, kLength, kHead, 1.0f, l.v, kHead,
             g.values, kHead);
    per_head(g.v, CUBLAS_OP_N, CUBLAS_OP_T, kHead, kLength, kLength, 1.0f, g.values, kHead,
             l.attention, kLength);
    softmax_causal_backward<<<blocks(rows), 128, 0, stream>>>(g.scores, g.attention, l.attention,
                                                              kLength, rows);
    per_head(g.q, CUBLAS_OP_N, CUBLAS_OP_N, kHead, kLength, kLength, kScale, l.k, kHead, g.scores,
             kLength);
    per_head(g.k, CUBLAS_OP_N, CUBLAS_OP_T, kHead, kLength, kLength, kScale, l.q, kHead, g.scores,
             kLength);
    split_heads_backward<<<blocks(n), 128, 0, stream>>>(g.qkv, g.q, g.k, g.v, kLength, kHeads,
                                                        kHead, n);
}

static void layer_norm_back(const Gradients &g, const float *in, const float *weight,
                            float *dweight, float *dbias, const float *means, const float *scales,
                            bool accumulate)
{
    layer_norm_backward_weights<<<blocks(kChannels), 128, 0, stream>>>(
        dweight, dbias, g.channels, in, means, scales, kRows, kChannels);
    layer_norm_backward<<<kRows, 32, 0, stream>>>(g.residual, g.channels, in, weight, means, scales,
                                                  kChannels, accumulate);
}

// The logits are their gradients already.
static void backward(const Parameters &p, Parameters &d, Activations &a, Gradients &g,
                     const int *tokens)
{
    const int n = kRows * kChannels;

    linear_backward(g.channels, d.wte, nullptr, a.logits, a.lnf, p.wte, kChannels, kVocabulary);
    layer_norm_back(g, a.layers[kLayers - 1].out, p.lnf_weight, d.lnf_weight, d.lnf_bias,
                    a.lnf_mean, a.lnf_scale, false);
    for (int i = kLayers - 1; i >= 0; i--) {
        const LayerParameters &w = p.layers[i];
        LayerParameters &dw = d.layers[i];
        LayerActivations &l = a.layers[i];
        const float *in = i > 0 ? a.layers[i - 1].out : a.embedded;

        linear_backward(g.wide, dw.down_weight, dw.down_bias, g.residual, l.active, w.down_weight,
                        4 * kChannels, kChannels);
        gelu_backward<<<blocks(4 * n), 128, 0, stream>>>(g.wide, l.up, 4 * n);
        linear_backward(g.channels, dw.up_weight, dw.up_bias, g.wide, l.ln2, w.up_weight, kChannels,
                        4 * kChannels);
        layer_norm_back(g, l.middle, w.ln2_weight, dw.ln2_weight, dw.ln2_bias, l.ln2_mean,
                        l.ln2_scale, true);
        linear_backward(g.channels, dw.projection_weight, dw.projection_bias, g.residual, l.joined,
                        w.projection_weight, kChannels, kChannels);
        attention_backward(l, g);
        linear_backward(g.channels, dw.qkv_weight, dw.qkv_bias, g.qkv, l.ln1, w.qkv_weight,
                        kChannels, 3 * kChannels);
        layer_norm_back(g, in, w.ln1_weight, dw.ln1_weight, dw.ln1_bias, l.ln1_mean, l.ln1_scale,
                        true);
    }
    embed_backward_tokens<<<blocks(kVocabulary * kChannels), 128, 0, stream>>>(
        d.wte, g.residual, tokens, kRows, kChannels, kVocabulary * kChannels);
    embed_backward_positions<<<blocks(kLength * kChannels), 128, 0, stream>>>(
        d.wpe, g.residual, kBatch, kLength * kChannels);
    CUDA_CHECK(cudaGetLastError());
}

// ------------------------------------------------------------------------------------------- main

static uint32_t random_state = 42;

static uint32_t random_bits()
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

// Weights of layer norms are 1, their biases and all others' 0; the rest is between -0.05 and 0.05.
static std::vector<float> initial_parameters(const Parameters &p, const float *base, size_t count)
{
    std::vector<float> values(count);

    for (float &value : values) {
        value = (random_bits() / 8388608.0f - 1.0f) * 0.05f;
    }
    auto fill = [&](const float *part, int elements, float value) {
        for (int i = 0; i < elements; i++) {
            values[part - base + i] = value;
        }
    };
    for (const LayerParameters &layer : p.layers) {
        fill(layer.ln1_weight, kChannels, 1.0f);
        fill(layer.ln1_bias, kChannels, 0.0f);
        fill(layer.qkv_bias, 3 * kChannels, 0.0f);
        fill(layer.projection_bias, kChannels, 0.0f);
        fill(layer.ln2_weight, kChannels, 1.0f);
        fill(layer.ln2_bias, kChannels, 0.0f);
        fill(layer.up_bias, 4 * kChannels, 0.0f);
        fill(layer.down_bias, kChannels, 0.0f);
    }
    fill(p.lnf_weight, kChannels, 1.0f);
    fill(p.lnf_bias, kChannels, 0.0f);
    return values;
}

// Each sequence starts anywhere and goes on by a rule that can be learned.
static void make_batch(std::vector<int> &tokens, std::vector<int> &targets)
{
    for (int b = 0; b < kBatch; b++) {
        int token = random_bits() % kVocabulary;

        for (int t = 0; t < kLength; t++) {
            tokens[b * kLength + t] = token;
            token = (5 * token + 7) % kVocabulary;
            targets[b * kLength + t] = token;
        }
    }
}

static float mean_loss(const Activations &a)
{
    std::vector<float> losses(kRows);
    float sum = 0.0f;

    CUDA_CHECK(cudaMemcpyAsync(losses.data(), a.losses, kRows * sizeof(float),
                               cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    for (float loss : losses) {
        sum += loss;
    }
    return sum / kRows;
}

// FNV-1a over the bytes of all parameters.
static uint64_t checksum(const float *parameters, size_t count)
{
    std::vector<float> values(count);
    uint64_t hash = 14695981039346656037ull;

    CUDA_CHECK(
        cudaMemcpy(values.data(), parameters, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count * sizeof(float); i++) {
        hash =
            (hash ^ reinterpret_cast<const unsigned char *>(values.data())[i]) * 1099511628211ull;
    }
    return hash;
}

int main(int count, char **arguments)
{
    int steps = count > 1 ? atoi(arguments[1]) : 5;
    float *parameter_blob, *gradient_blob, *first_blob, *second_blob, *activation_blob, *other_blob;
    Parameters parameters, gradients, moments;
    Activations activations;
    Gradients others;
    int *tokens, *targets;
    std::vector<int> host_tokens(kRows), host_targets(kRows);
    float correction1 = 1.0f, correction2 = 1.0f;

    CUDA_CHECK(cudaStreamCreate(&stream));
    CUBLAS_CHECK(cublasCreate(&cublas));
    CUBLAS_CHECK(cublasSetStream(cublas, stream));
    size_t parameter_count = allocate(parameters, &parameter_blob);
    allocate(gradients, &gradient_blob);
    allocate(moments, &first_blob);
    allocate(moments, &second_blob);
    allocate(activations, &activation_blob);
    allocate(others, &other_blob);
    CUDA_CHECK(cudaMalloc(&tokens, kRows * sizeof(int)));
    CUDA_CHECK(cudaMalloc(&targets, kRows * sizeof(int)));
    std::vector<float> initial = initial_parameters(parameters, parameter_blob, parameter_count);
    CUDA_CHECK(cudaMemcpy(parameter_blob, initial.data(), parameter_count * sizeof(float),
                          cudaMemcpyHostToDevice));

    for (int step = 1; step <= steps; step++) {
        make_batch(host_tokens, host_targets);
        CUDA_CHECK(cudaMemcpyAsync(tokens, host_tokens.data(), kRows * sizeof(int),
                                   cudaMemcpyHostToDevice, stream));
        CUDA_CHECK(cudaMemcpyAsync(targets, host_targets.data(), kRows * sizeof(int),
                                   cudaMemcpyHostToDevice, stream));
        forward(parameters, activations, tokens);
        cross_entropy<<<blocks(kRows), 128, 0, stream>>>(activations.losses, activations.logits,
                                                         targets, kVocabulary, kRows);
        backward(parameters, gradients, activations, others, tokens);
        correction1 = step == 1 ? 0.1f : 1.0f - (1.0f - correction1) * 0.9f;
        correction2 = step == 1 ? 0.01f : 1.0f - (1.0f - correction2) * 0.99f;
        adamw<<<blocks(parameter_count), 128, 0, stream>>>(
            parameter_blob, gradient_blob, first_blob, second_blob, 0.003f, correction1,
            correction2, 0.01f, static_cast<int>(parameter_count));
        CUDA_CHECK(cudaGetLastError());
        printf("step %d: loss %.6f\n", step, mean_loss(activations));
    }
    printf("weights %016llx\n",
           static_cast<unsigned long long>(checksum(parameter_blob, parameter_count)));
    CUBLAS_CHECK(cublasDestroy(cublas));
    for (float *blob :
         {parameter_blob, gradient_blob, first_blob, second_blob, activation_blob, other_blob}) {
        CUDA_CHECK(cudaFree(blob));
    }
    CUDA_CHECK(cudaFree(tokens));
    CUDA_CHECK(cudaFree(targets));
    CUDA_CHECK(cudaStreamDestroy(stream));
    return 0;
}
