/* matmul on the host: three matrix products, and the bias. */
#include "kernels/matmul.h"

#include "kernels/copies.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"

/* Rows per tile when the bias is written, and columns per tile when gradients are summed. */
#define BIAS_ROWS ((size_t)32)
#define BIAS_COLUMNS ((size_t)64)

/* The bias is written first and the product is added to it, which saves a pass over the output. */
static void bias_tile(const void *arguments, size_t tile)
{
    const struct matmul *matmul = arguments;
    struct parallel_range rows = parallel_items(tile, BIAS_ROWS, matmul->rows);
    const float *restrict bias = matmul->bias;

    for (size_t row = rows.first; row < rows.end; row++) {
        float *restrict output = (float *)matmul->output + row * matmul->outputs;

        for (size_t i = 0; i < matmul->outputs; i++) {
            output[i] = bias[i];
        }
    }
}

/* Each tile sums its columns over all rows in order. */
static void bias_gradient_tile(const void *arguments, size_t tile)
{
    const struct matmul *matmul = arguments;
    struct parallel_range columns = parallel_items(tile, BIAS_COLUMNS, matmul->outputs);
    size_t count = columns.end - columns.first;
    float sums[BIAS_COLUMNS] = {0};

    for (size_t row = 0; row < matmul->rows; row++) {
        const float *gradient =
            (const float *)matmul->output_gradient + row * matmul->outputs + columns.first;

        for (size_t i = 0; i < count; i++) {
            sums[i] += gradient[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        float *to = &matmul->bias_gradient[columns.first + i];
        *to = matmul->accumulate ? *to + sums[i] : sums[i];
    }
}

static void forward(const struct matmul *matmul)
{
    if (matmul->bias != NULL) {
        parallel_run(parallel_tiles(matmul->rows, BIAS_ROWS), bias_tile, matmul);
    }
    gemm_run(&(struct gemm){
        .rows = matmul->rows,
        .columns = matmul->outputs,
        .depth = matmul->inputs,
        .a = matmul->input,
        .a_stride = matmul->inputs,
        .b = matmul->weight,
        .b_stride = matmul->inputs,
        .b_transposed = true,
        .c = matmul->output,
        .c_stride = matmul->outputs,
        .beta = matmul->bias != NULL ? 1.0f : 0.0f,
    });
}

static void backward_input(const struct matmul *matmul)
{
    gemm_run(&(struct gemm){
        .rows = matmul->rows,
        .columns = matmul->inputs,
        .depth = matmul->outputs,
        .a = matmul->output_gradient,
        .a_stride = matmul->outputs,
        .b = matmul->weight,
        .b_stride = matmul->inputs,
        .c = matmul->input_gradient,
        .c_stride = matmul->inputs,
    });
}

static void backward_weight(const struct matmul *matmul)
{
    gemm_run(&(struct gemm){
        .rows = matmul->outputs,
        .columns = matmul->inputs,
        .depth = matmul->rows,
        .a = matmul->output_gradient,
        .a_stride = matmul->outputs,
        .a_transposed = true,
        .b = matmul->input,
        .b_stride = matmul->inputs,
        .c = matmul->weight_gradient,
        .c_stride = matmul->inputs,
        .beta = matmul->accumulate ? 1.0f : 0.0f,
    });
    if (matmul->bias_gradient != NULL) {
        parallel_run(parallel_tiles(matmul->outputs, BIAS_COLUMNS), bias_gradient_tile, matmul);
    }
}

capu_status matmul_forward_host(capu_stream stream, const void *arguments)
{
    struct matmul matmul = *(const struct matmul *)arguments;
    struct copies copies = {.element = matmul.element};

    (void)stream;
    matmul.input = copies_read(&copies, matmul.input, (size_t)matmul.rows * matmul.inputs);
    matmul.weight = copies_read(&copies, matmul.weight, (size_t)matmul.outputs * matmul.inputs);
    matmul.bias = copies_read(&copies, matmul.bias, matmul.outputs);
    matmul.output = copies_write(&copies, matmul.output, (size_t)matmul.rows * matmul.outputs);
    if (copies.status == CAPU_OK) {
        forward(&matmul);
    }
    return copies_finish(&copies);
}

capu_status matmul_backward_input_host(capu_stream stream, const void *arguments)
{
    struct matmul matmul = *(const struct matmul *)arguments;
    struct copies copies = {.element = matmul.element};
    size_t input = (size_t)matmul.rows * matmul.inputs;
    size_t output = (size_t)matmul.rows * matmul.outputs;

    (void)stream;
    matmul.output_gradient = copies_read(&copies, matmul.output_gradient, output);
    matmul.weight = copies_read(&copies, matmul.weight, (size_t)matmul.outputs * matmul.inputs);
    matmul.input_gradient = copies_write(&copies, matmul.input_gradient, input);
    if (copies.status == CAPU_OK) {
        backward_input(&matmul);
    }
    return copies_finish(&copies);
}

capu_status matmul_backward_weight_host(capu_stream stream, const void *arguments)
{
    struct matmul matmul = *(const struct matmul *)arguments;
    struct copies copies = {.element = matmul.element};
    size_t output = (size_t)matmul.rows * matmul.outputs;

    (void)stream;
    matmul.output_gradient = copies_read(&copies, matmul.output_gradient, output);
    matmul.input = copies_read(&copies, matmul.input, (size_t)matmul.rows * matmul.inputs);
    if (copies.status == CAPU_OK) {
        backward_weight(&matmul);
    }
    return copies_finish(&copies);
}
