/* matmul on cuda: three matrix products, and the bias. */
#include "kernels/matmul.h"

#include "kernels/blas.cuh"
#include "kernels/grid.cuh"

/* A block of LINES x COLUMNS threads sums COLUMNS columns: 64 bytes of each row at once. */
#define COLUMNS 16u
#define LINES 32u

/* The bias is written first and the product is added to it, before the sum is rounded. */
template <typename Element> static __global__ void spread_bias(const struct matmul matmul)
{
    const Element *bias = (const Element *)matmul.bias;

    for (size_t row = grid_first_row(); row < matmul.rows; row += grid_row_stride()) {
        Element *output = (Element *)matmul.output + row * matmul.outputs;

        for (size_t i = grid_lane(); i < matmul.outputs; i += GRID_WARP) {
            output[i] = bias[i];
        }
    }
}

/* Line k of the threads sums the rows k, k + LINES, ..., and the lines are added in order. */
template <typename Element> static __global__ void sum_bias_gradient(const struct matmul matmul)
{
    __shared__ float sums[LINES][COLUMNS];
    const Element *gradients = (const Element *)matmul.output_gradient;
    unsigned line = threadIdx.x / COLUMNS;
    size_t column = (size_t)blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    float sum = 0.0f;

    for (size_t row = line; row < matmul.rows && column < matmul.outputs; row += LINES) {
        sum += gradients[row * matmul.outputs + column];
    }
    sums[line][threadIdx.x % COLUMNS] = sum;
    __syncthreads();
    if (line != 0 || column >= matmul.outputs) {
        return;
    }
    for (unsigned other = 1; other < LINES; other++) {
        sum += sums[other][threadIdx.x % COLUMNS];
    }
    matmul.bias_gradient[column] =
        matmul.accumulate != 0 ? matmul.bias_gradient[column] + sum : sum;
}

static enum element element_of(const struct matmul *matmul)
{
    return matmul->element == ELEMENT_BF16 ? ELEMENT_BF16 : ELEMENT_FP32;
}

capu_status matmul_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct matmul *matmul = (const struct matmul *)arguments;
    struct gemm gemm = {};
    capu_status status = CAPU_OK;

    if (matmul->bias != NULL) {
        GRID_LAUNCH_FOR(matmul->element, spread_bias, grid_blocks(matmul->rows, GRID_WARPS),
                        GRID_THREADS, stream, *matmul);
        status = grid_status();
    }
    gemm.element = element_of(matmul);
    gemm.result = element_of(matmul);
    gemm.rows = matmul->rows;
    gemm.columns = matmul->outputs;
    gemm.depth = matmul->inputs;
    gemm.a = matmul->input;
    gemm.a_stride = matmul->inputs;
    gemm.b = matmul->weight;
    gemm.b_stride = matmul->inputs;
    gemm.b_transposed = true;
    gemm.c = matmul->output;
    gemm.c_stride = matmul->outputs;
    gemm.beta = matmul->bias != NULL ? 1.0f : 0.0f;
    return status == CAPU_OK ? blas_gemm(stream, &gemm, NULL) : status;
}

capu_status matmul_backward_input_cuda(capu_stream stream, const void *arguments)
{
    const struct matmul *matmul = (const struct matmul *)arguments;
    struct gemm gemm = {};

    gemm.element = element_of(matmul);
    gemm.result = element_of(matmul);
    gemm.rows = matmul->rows;
    gemm.columns = matmul->inputs;
    gemm.depth = matmul->outputs;
    gemm.a = matmul->output_gradient;
    gemm.a_stride = matmul->outputs;
    gemm.b = matmul->weight;
    gemm.b_stride = matmul->inputs;
    gemm.c = matmul->input_gradient;
    gemm.c_stride = matmul->inputs;
    return blas_gemm(stream, &gemm, NULL);
}

capu_status matmul_backward_weight_cuda(capu_stream stream, const void *arguments)
{
    const struct matmul *matmul = (const struct matmul *)arguments;
    struct gemm gemm = {};
    capu_status status;

    gemm.element = element_of(matmul);
    gemm.result = ELEMENT_FP32;
    gemm.rows = matmul->outputs;
    gemm.columns = matmul->inputs;
    gemm.depth = matmul->rows;
    gemm.a = matmul->output_gradient;
    gemm.a_stride = matmul->outputs;
    gemm.a_transposed = true;
    gemm.b = matmul->input;
    gemm.b_stride = matmul->inputs;
    gemm.c = matmul->weight_gradient;
    gemm.c_stride = matmul->inputs;
    gemm.beta = matmul->accumulate != 0 ? 1.0f : 0.0f;
    status = blas_gemm(stream, &gemm, NULL);
    if (status == CAPU_OK && matmul->bias_gradient != NULL) {
        GRID_LAUNCH_FOR(matmul->element, sum_bias_gradient,
                        grid_blocks_all(matmul->outputs, COLUMNS), LINES * COLUMNS, stream,
                        *matmul);
        status = grid_status();
    }
    return status;
}
