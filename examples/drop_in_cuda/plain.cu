/*
 * A plain CUDA training loop, before: cudaMalloc, kernels, cuBLAS, cudaMemcpy.
 * `diff plain.cu drop_in.cu` shows what using the library takes.
 */
#include "examples/drop_in_cuda/network.cuh"

#include <stdio.h>
#include <stdlib.h>

static cublasHandle_t blas;

static void check(int error, const char *call)
{
    if (error != 0) {
        fprintf(stderr, "plain: %s: error %d\n", call, error);
        exit(1);
    }
}

#define CHECK(call) check((int)(call), #call)

static float *make(size_t bytes)
{
    void *address = NULL;

    CHECK(cudaMalloc(&address, bytes));
    return (float *)address;
}

static void forward(const float *input, const float *weight, float *output)
{
    CHECK(multiply_by_transposed(blas, input, weight, output, ROWS, WIDTH, WIDTH));
    bend<<<BLOCKS(BATCH_ITEMS), THREADS>>>(output);
}

static void compare(const float *output, const float *target, float *gradient, float *loss)
{
    measure<<<1, THREADS>>>(output, target, gradient, loss);
}

static void backward(const float *input, const float *weight, const float *output, float *gradient,
                     float *weight_gradient, float *input_gradient)
{
    bend_back<<<BLOCKS(BATCH_ITEMS), THREADS>>>(output, gradient);
    CHECK(multiply_transposed(blas, gradient, input, weight_gradient, WIDTH, WIDTH, ROWS));
    CHECK(multiply(blas, gradient, weight, input_gradient, ROWS, WIDTH, WIDTH));
}

static void update(float *weight, const float *weight_gradient)
{
    step_weight<<<BLOCKS(WEIGHT_ITEMS), THREADS>>>(weight, weight_gradient);
}

int main(void)
{
    static float values[BATCH_ITEMS];
    float *activation[LAYERS + 1];
    float *weight[LAYERS];
    float *gradient[2];
    float *weight_gradient = make(WEIGHT_BYTES);
    float *target = make(BATCH_BYTES);
    float *loss = make(sizeof(float));

    CHECK(cublasCreate(&blas));
    gradient[0] = make(BATCH_BYTES);
    gradient[1] = make(BATCH_BYTES);
    for (int i = 0; i <= LAYERS; i++) {
        activation[i] = make(BATCH_BYTES);
    }
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = make(WEIGHT_BYTES);
        fill(values, WEIGHT_ITEMS, 0.05f, (unsigned)i);
        CHECK(cudaMemcpy(weight[i], values, WEIGHT_BYTES, cudaMemcpyHostToDevice));
    }
    for (int step = 1; step <= STEPS; step++) {
        float result;

        fill(values, BATCH_ITEMS, 1.0f, 100);
        CHECK(cudaMemcpy(activation[0], values, BATCH_BYTES, cudaMemcpyHostToDevice));
        fill(values, BATCH_ITEMS, 0.5f, 200);
        CHECK(cudaMemcpy(target, values, BATCH_BYTES, cudaMemcpyHostToDevice));
        for (int i = 0; i < LAYERS; i++) {
            forward(activation[i], weight[i], activation[i + 1]);
        }
        compare(activation[LAYERS], target, gradient[0], loss);
        for (int i = LAYERS; i-- > 0;) {
            float *from = gradient[(LAYERS - 1 - i) % 2];
            float *to = gradient[(LAYERS - i) % 2];

            backward(activation[i], weight[i], activation[i + 1], from, weight_gradient, to);
            update(weight[i], weight_gradient);
        }
        CHECK(cudaMemcpy(&result, loss, sizeof(result), cudaMemcpyDeviceToHost));
        CHECK(cudaGetLastError());
        printf("step %d  loss %a\n", step, (double)result);
    }
    return 0;
}
