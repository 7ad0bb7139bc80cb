// The kernels of gpt.cu.
#pragma once

#include <cuda_runtime.h>

__global__ void embed(float *out, const int *tokens, const float *wte, const float *wpe, int length,
                      int channels, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        int row = i / channels;
        int channel = i % channels;

        out[i] = wte[tokens[row] * channels + channel] + wpe[row % length * channels + channel];
    }
}

// One thread per element of wte: adds to the gradient that the last layer has left there.
__global__ void embed_backward_tokens(float *dwte, const float *dout, const int *tokens, int rows,
                                      int channels, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        float sum = dwte[i];

        for (int row = 0; row < rows; row++) {
            if (tokens[row] == i / channels) {
                sum += dout[row * channels + i % channels];
            }
        }
        dwte[i] = sum;
    }
}

__global__ void embed_backward_positions(float *dwpe, const float *dout, int batch, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        float sum = 0.0f;

        for (int b = 0; b < batch; b++) {
            sum += dout[b * count + i];
        }
        dwpe[i] = sum;
    }
}

__device__ float warp_sum(float value)
{
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_xor_sync(0xffffffff, value, offset);
    }
    return value;
}

// One warp per row.
__global__ void layer_norm(float *out, float *means, float *scales, const float *in,
                           const float *weight, const float *bias, int channels)
{
    int row = blockIdx.x;
    float sum = 0.0f;
    float squares = 0.0f;

    for (int i = threadIdx.x; i < channels; i += 32) {
        sum += in[row * channels + i];
    }
    float mean = warp_sum(sum) / channels;
    for (int i = threadIdx.x; i < channels; i += 32) {
        float difference = in[row * channels + i] - mean;

        squares += difference * difference;
    }
    float scale = rsqrtf(warp_sum(squares) / channels + 1e-5f);
    for (int i = threadIdx.x; i < channels; i += 32) {
        out[row * channels + i] = (in[row * channels + i] - mean) * scale * weight[i] + bias[i];
    }
    if (threadIdx.x == 0) {
        means[row] = mean;
        scales[row] = scale;
    }
}

// Adds to din, or stores it.
__global__ void layer_norm_backward(float *din, const float *dout, const float *in,
                                    const float *weight, const float *means, const float *scales,
                                    int channels, bool accumulate)
{
    int row = blockIdx.x;
    float mean = means[row];
    float scale = scales[row];
    float sum = 0.0f;
    float products = 0.0f;

    for (int i = threadIdx.x; i < channels; i += 32) {
        float gradient = weight[i] * dout[row * channels + i];

        sum += gradient;
        products += gradient * (in[row * channels + i] - mean) * scale;
    }
    sum = warp_sum(sum) / channels;
    products = warp_sum(products) / channels;
    for (int i = threadIdx.x; i < channels; i += 32) {
        float normal = (in[row * channels + i] - mean) * scale;
        float value = (weight[i] * dout[row * channels + i] - sum - normal * products) * scale;

        din[row * channels + i] = accumulate ? din[row * channels + i] + value : value;
    }
}

__global__ void layer_norm_backward_weights(float *dweight, float *dbias, const float *dout,
                                            const float *in, const float *means,
                                            const float *scales, int rows, int channels)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float weight = 0.0f;
    float bias = 0.0f;

    if (i < channels) {
        for (int row = 0; row < rows; row++) {
            float gradient = dout[row * channels + i];

            weight += gradient * (in[row * channels + i] - means[row]) * scales[row];
            bias += gradient;
        }
        dweight[i] = weight;
        dbias[i] = bias;
    }
}

__global__ void add_bias(float *out, const float *bias, int columns, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        out[i] += bias[i % columns];
    }
}

__global__ void bias_backward(float *dbias, const float *dout, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;

    if (column < columns) {
        for (int row = 0; row < rows; row++) {
            sum += dout[row * columns + column];
        }
        dbias[column] = sum;
    }
}

// Splits qkv[batch][length][3][heads][head] into q, k and v, each [batch][heads][length][head].
__global__ void split_heads(float *q, float *k, float *v, const float *qkv, int length, int heads,
                            int head, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        int d = i % head;
        int t = i / head % length;
        int h = i / (head * length) % heads;
        int b = i / (head * length * heads);
        int from = ((b * length + t) * 3 * heads + h) * head + d;

        q[i] = qkv[from];
        k[i] = qkv[from + heads * head];
        v[i] = qkv[from + 2 * heads * head];
    }
}

__global__ void split_heads_backward(float *dqkv, const float *dq, const float *dk, const float *dv,
                                     int length, int heads, int head, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        int d = i % head;
        int t = i / head % length;
        int h = i / (head * length) % heads;
        int b = i / (head * length * heads);
        int to = ((b * length + t) * 3 * heads + h) * head + d;

        dqkv[to] = dq[i];
        dqkv[to + heads * head] = dk[i];
        dqkv[to + 2 * heads * head] = dv[i];
    }
}

// From [batch][heads][length][head] to [batch][length][heads][head], or back.
__global__ void join_heads(float *out, const float *in, int length, int heads, int head, int count,
                           bool back)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        int d = i % head;
        int t = i / head % length;
        int h = i / (head * length) % heads;
        int b = i / (head * length * heads);
        int joined = ((b * length + t) * heads + h) * head + d;

        if (back) {
            out[i] = in[joined];
        } else {
            out[joined] = in[i];
        }
    }
}

// One thread per row of scores. What is after the diagonal stays zero from the start.
__global__ void softmax_causal(float *out, const float *in, int length, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;

    if (row < rows) {
        int own = row % length;
        const float *from = in + row * length;
        float largest = from[0];
        float sum = 0.0f;

        for (int i = 1; i <= own; i++) {
            largest = fmaxf(largest, from[i]);
        }
        for (int i = 0; i <= own; i++) {
            sum += expf(from[i] - largest);
        }
        for (int i = 0; i <= own; i++) {
            out[row * length + i] = expf(from[i] - largest) / sum;
        }
    }
}

__global__ void softmax_causal_backward(float *din, const float *dout, const float *out, int length,
                                        int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;

    if (row < rows) {
        int own = row % length;
        float sum = 0.0f;

        for (int i = 0; i <= own; i++) {
            sum += dout[row * length + i] * out[row * length + i];
        }
        for (int i = 0; i < length; i++) {
            int at = row * length + i;

            din[at] = i <= own ? out[at] * (dout[at] - sum) : 0.0f;
        }
    }
}

__global__ void add(float *out, const float *a, const float *b, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        out[i] = a[i] + b[i];
    }
}

__global__ void gelu(float *out, const float *in, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        float x = in[i];

        out[i] = 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    }
}

// In place.
__global__ void gelu_backward(float *gradient, const float *in, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        float x = in[i];
        float t = tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
        float slope = 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);

        gradient[i] *= 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope;
    }
}

// One thread per row; the logits become their gradients.
__global__ void cross_entropy(float *losses, float *logits, const int *targets, int columns,
                              int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;

    if (row < rows) {
        float *from = logits + row * columns;
        float largest = from[0];
        float sum = 0.0f;

        for (int i = 1; i < columns; i++) {
            largest = fmaxf(largest, from[i]);
        }
        for (int i = 0; i < columns; i++) {
            sum += expf(from[i] - largest);
        }
        losses[row] = logf(sum) - (from[targets[row]] - largest);
        for (int i = 0; i < columns; i++) {
            float probability = expf(from[i] - largest) / sum;

            from[i] = (probability - (i == targets[row] ? 1.0f : 0.0f)) / rows;
        }
    }
}

__global__ void adamw(float *parameters, const float *gradients, float *first, float *second,
                      float rate, float correction1, float correction2, float decay, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        float gradient = gradients[i];
        float m = 0.9f * first[i] + 0.1f * gradient;
        float v = 0.99f * second[i] + 0.01f * gradient * gradient;

        first[i] = m;
        second[i] = v;
        parameters[i] -=
            rate * (m / correction1 / (sqrtf(v / correction2) + 1e-8f) + decay * parameters[i]);
    }
}
