/* matmul on cuda: three matrix products, and the bias. */
#include "kernels/matmul.h"

#include "kernels/blas.cuh"
#include "kernels/grid.cuh"
#include "kernels/parts.cuh"

/* Where cublasLt cannot add the bias: it is written first, and the product is added to it before
   the sum is rounded. */
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

template <typename Element>
static __global__ void sum_bias_gradient(const struct matmul matmul, float *parts)
{
    const Element *gradients = (const Element *)matmul.output_gradient;
    size_t columns = matmul.outputs;

    parts_sum_rows<1>(matmul.rows, columns, parts, [=](size_t row, size_t column, float *sums) {
        sums[0] += gradients[row * columns + column];
    });
}

static enum element element_of(const struct matmul *matmul)
{
    return matmul->element == ELEMENT_BF16 ? ELEMENT_BF16 : ELEMENT_FP32;
}

capu_status matmul_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct matmul *matmul = (const struct matmul *)arguments;
    struct gemm gemm = {};
    bool is_done = false;
    capu_status status = CAPU_OK;

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
    if (matmul->bias != NULL) {
        status = blas_gemm_biased(stream, &gemm, matmul->bias, &is_done);
        if (status != CAPU_OK || is_done) {
            return status;
        }
        GRID_LAUNCH_FOR(matmul->element, spread_bias, grid_blocks(matmul->rows, GRID_WARPS),
                        GRID_THREADS, stream, *matmul);
        gemm.beta = 1.0f;
        status = grid_status();
    }
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

static capu_status backward_bias(capu_stream stream, const struct matmul *matmul)
{
    dim3 blocks = parts_of_rows(matmul->rows, matmul->outputs);
    void *parts = NULL;
    capu_status status =
        parts_scratch(stream, (size_t)blocks.y * matmul->outputs * sizeof(float), &parts);

    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH_FOR(matmul->element, sum_bias_gradient, blocks, PARTS_THREADS, stream, *matmul,
                    (float *)parts);
    parts_launch_add(stream, (const float *)parts, blocks.y, matmul->bias_gradient, matmul->outputs,
                     matmul->accumulate != 0);
    return grid_status();
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
    return status == CAPU_OK && matmul->bias_gradient != NULL ? backward_bias(stream, matmul)
                                                              : status;
}
