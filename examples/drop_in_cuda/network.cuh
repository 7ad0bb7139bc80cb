/*
 * The work of both programs: dense layers, output = tanh(input weight^T), that learn to map one
 * batch to another. The kernels and products are those of an ordinary CUDA program and do not
 * change.
 */
#ifndef CAPU_EXAMPLES_DROP_IN_CUDA_NETWORK_CUH
#define CAPU_EXAMPLES_DROP_IN_CUDA_NETWORK_CUH

#include <cublas_v2.h>

#include <stddef.h>

#define LAYERS 12
#define ROWS 4096  /* of a batch */
#define WIDTH 1024 /* of a layer */
#define STEPS 10
#define RATE 0.05f

#define BATCH_ITEMS ((size_t)ROWS * WIDTH)
#define BATCH_BYTES (BATCH_ITEMS * sizeof(float))
#define WEIGHT_ITEMS ((size_t)WIDTH * WIDTH)
#define WEIGHT_BYTES (WEIGHT_ITEMS * sizeof(float))

#define THREADS 256
#define BLOCKS(items) ((unsigned)(((items) + THREADS - 1) / THREADS))

static __global__ void bend(float *output)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;

    output[i] = tanhf(output[i]);
}

static __global__ void bend_back(const float *output, float *gradient)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;

    gradient[i] *= 1.0f - output[i] * output[i];
}

static __global__ void step_weight(float *weight, const float *gradient)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;

    weight[i] -= RATE * gradient[i];
}

/* A single block, so that the sum has one order. */
static __global__ void measure(const float *output, const float *target, float *gradient,
                               float *loss)
{
    __shared__ double sums[THREADS];
    double sum = 0.0;

    for (size_t i = threadIdx.x; i < BATCH_ITEMS; i += THREADS) {
        float distance = output[i] - target[i];

        gradient[i] = distance / ROWS;
        sum += 0.5 * distance * distance;
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < THREADS; i++) {
            sum += sums[i];
        }
        *loss = (float)(sum / BATCH_ITEMS);
    }
}

/* Stored by rows: c = a b^T, a b, a^T b, each `rows` x `columns`, over `depth` terms. */
static cublasStatus_t multiply_by_transposed(cublasHandle_t blas, const float *a, const float *b,
                                             float *c, int rows, int columns, int depth)
{
    const float one = 1.0f;
    const float zero = 0.0f;

    return cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, columns, rows, depth, &one, b, depth, a,
                       depth, &zero, c, columns);
}

static cublasStatus_t multiply(cublasHandle_t blas, const float *a, const float *b, float *c,
                               int rows, int columns, int depth)
{
    const float one = 1.0f;
    const float zero = 0.0f;

    return cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, columns, rows, depth, &one, b, columns, a,
                       depth, &zero, c, columns);
}

static cublasStatus_t multiply_transposed(cublasHandle_t blas, const float *a, const float *b,
                                          float *c, int rows, int columns, int depth)
{
    const float one = 1.0f;
    const float zero = 0.0f;

    return cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, columns, rows, depth, &one, b, columns, a,
                       rows, &zero, c, columns);
}

/* The initial contents, on the host: numbers between -size and size, the same in every run. */
static void fill(float *values, size_t count, float size, unsigned seed)
{
    unsigned long long state = seed;

    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        values[i] = size * ((float)(state >> 40) / 8388608.0f - 1.0f);
    }
}

#endif
