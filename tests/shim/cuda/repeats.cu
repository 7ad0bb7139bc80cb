// Training whose activations could be computed again, if that is legal.
//
//     repeats STEPS
//
// Each step makes activations of its input, and goes back through them, newest first. Some depend
// on what is not the same later: a variable of the module, a small table that is changed between,
// pinned memory that the host changes, a clock, or atomics; some change what they have read. If one
// of those were computed again, sums that are printed would differ, or the report would name it.
#include "tests/shim/cuda/traps_grid.cuh"
#include "tests/shim/cuda/traps_memory.cuh"

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

const int kPlain = 5;
const int kTable = 64;

__device__ float bias_variable;
__constant__ float bias_constant;

// The same again, as long as its operands are.
__global__ void activate(float *out, const float *in, float factor, float offset, int count)
{
    int i = global_index();

    if (i < count) {
        out[i] = fmaxf(__fmul_rn(in[i], factor), 0.0f) + offset;
    }
}

// So is this one, with a block's own memory.
__global__ void reverse(float *out, const float *in)
{
    __shared__ float values[kThreads];

    values[threadIdx.x] = in[global_index()];
    __syncthreads();
    out[global_index()] = values[kThreads - 1 - threadIdx.x];
}

// The same if the table is, which is small.
__global__ void look_up_table(float *out, const float *in, const float *table)
{
    int i = global_index();

    out[i] = in[i] + table[i % kTable];
}

__global__ void with_variable(float *out, const float *in)
{
    int i = global_index();

    out[i] = in[i] + bias_variable;
}

__global__ void with_constant(float *out, const float *in)
{
    int i = global_index();

    out[i] = in[i] + bias_constant;
}

// `more` is pinned memory of the host.
__global__ void with_pinned(float *out, const float *in, const float *more)
{
    int i = global_index();

    out[i] = in[i] + more[i % kTable];
}

__global__ void with_clock(float *out, const float *in)
{
    int i = global_index();

    out[i] = in[i] + (clock64() == -1 ? 1.0f : 0.0f);
}

__global__ void with_atomics(float *out, const float *in)
{
    __shared__ int largest;
    int i = global_index();

    if (threadIdx.x == 0) {
        largest = 0;
    }
    __syncthreads();
    atomicMax(&largest, static_cast<int>(in[i] * 100.0f));
    __syncthreads();
    out[i] = in[i] + static_cast<float>(largest);
}

__global__ void in_place(float *values, float factor)
{
    int i = global_index();

    values[i] = __fmul_rn(values[i], factor);
}

__global__ void add_product(float *sum, const float *a, const float *b)
{
    int i = global_index();

    sum[i] = __fadd_rn(sum[i], __fmul_rn(a[i], b[i]));
}

static float *plain[kPlain], *reversed, *looked_up, *of_variable, *of_constant, *of_pinned;
static float *of_clock, *of_atomics, *changed, *batch, *sum, *table, *numbers;

static void forward(float number)
{
    float *from = batch;

    for (int i = 0; i < kPlain; i++) {
        activate<<<kBlocks, kThreads>>>(plain[i], from, 0.75f, number + i, kCount);
        from = plain[i];
    }
    reverse<<<kBlocks, kThreads>>>(reversed, batch);
    look_up_table<<<kBlocks, kThreads>>>(looked_up, batch, table);
    with_variable<<<kBlocks, kThreads>>>(of_variable, batch);
    with_constant<<<kBlocks, kThreads>>>(of_constant, batch);
    with_pinned<<<kBlocks, kThreads>>>(of_pinned, batch, numbers);
    with_clock<<<kBlocks, kThreads>>>(of_clock, batch);
    with_atomics<<<kBlocks, kThreads>>>(of_atomics, batch);
    activate<<<kBlocks, kThreads>>>(changed, batch, 0.5f, number, kCount);
    in_place<<<kBlocks, kThreads>>>(changed, 1.25f);
}

// What some activations were made of is different from now on.
static void change(float number)
{
    CUDA_CHECK(cudaMemcpyToSymbol(bias_variable, &number, sizeof(number)));
    CUDA_CHECK(cudaMemcpyToSymbol(bias_constant, &number, sizeof(number)));
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < kTable; i++) {
        numbers[i] += number;
    }
    activate<<<1, kTable>>>(table, batch, number, 1.0f, kTable);
}

static void add_and_free(float *values)
{
    add_product<<<kBlocks, kThreads>>>(sum, values, batch);
    CUDA_CHECK(cudaFree(values));
}

static void step(int number)
{
    float **others[] = {&changed,     &of_atomics,  &of_clock,  &of_pinned,
                        &of_constant, &of_variable, &looked_up, &reversed};
    float factor = static_cast<float>(number) * 0.25f;

    CUDA_CHECK(cudaMemcpy(batch, made_up(kCount, number).data(), kBytes, cudaMemcpyHostToDevice));
    for (float *&activation : plain) {
        activation = device<float>(kCount);
    }
    for (float **activation : others) {
        *activation = device<float>(kCount);
    }
    forward(factor);
    change(factor + 0.5f);
    for (float **activation : others) {
        add_and_free(*activation);
    }
    for (int i = kPlain - 1; i >= 0; i--) {
        add_and_free(plain[i]);
    }
}

int main(int count, char **arguments)
{
    int steps = count > 1 ? atoi(arguments[1]) : 8;

    batch = device<float>(kCount);
    sum = filled(0);
    table = input(1, kTable);
    numbers = pinned<float>(kTable);
    for (int i = 0; i < kTable; i++) {
        numbers[i] = static_cast<float>(i);
    }
    for (int i = 0; i < steps; i++) {
        step(i);
        if (i % 3 == 2) {
            show("sum", sum);
        }
    }
    show("sum at the end", sum);
    return 0;
}
