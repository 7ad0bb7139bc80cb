/* Declares the operands of matmul and runs it. */
#include "kernels/matmul.h"

#include "kernels/launch.h"

/* What the three operations have in common. */
struct sizes {
    size_t input;
    size_t weight;
    size_t bias;
    size_t weight_gradient;
    size_t bias_gradient;
    size_t output;
    uint64_t flops;
};

static struct sizes sizes_of(const struct matmul *matmul)
{
    size_t item = element_bytes(matmul->element);

    return (struct sizes){
        .input = item * matmul->rows * matmul->inputs,
        .weight = item * matmul->outputs * matmul->inputs,
        .bias = item * matmul->outputs,
        .weight_gradient = sizeof(float) * matmul->outputs * matmul->inputs,
        .bias_gradient = sizeof(float) * matmul->outputs,
        .output = item * matmul->rows * matmul->outputs,
        .flops = UINT64_C(2) * matmul->rows * matmul->inputs * matmul->outputs,
    };
}

capu_status matmul_forward(capu_context *context, const struct matmul *matmul)
{
    struct sizes sizes = sizes_of(matmul);

    if (matmul->bias == NULL) {
        return LAUNCH_WITH(LAUNCH_NEEDS_PRODUCTS, context, matmul_forward, matmul, sizes.flops,
                           LAUNCH_READ(matmul->input, sizes.input),
                           LAUNCH_READ(matmul->weight, sizes.weight),
                           LAUNCH_WRITE(matmul->output, sizes.output));
    }
    return LAUNCH_WITH(
        LAUNCH_NEEDS_PRODUCTS, context, matmul_forward, matmul, sizes.flops,
        LAUNCH_READ(matmul->input, sizes.input), LAUNCH_READ(matmul->weight, sizes.weight),
        LAUNCH_READ(matmul->bias, sizes.bias), LAUNCH_WRITE(matmul->output, sizes.output));
}

capu_status matmul_backward_input(capu_context *context, const struct matmul *matmul)
{
    struct sizes sizes = sizes_of(matmul);

    return LAUNCH_WITH(LAUNCH_NEEDS_PRODUCTS, context, matmul_backward_input, matmul, sizes.flops,
                       LAUNCH_READ(matmul->output_gradient, sizes.output),
                       LAUNCH_READ(matmul->weight, sizes.weight),
                       LAUNCH_WRITE(matmul->input_gradient, sizes.input));
}

capu_status matmul_backward_weight(capu_context *context, const struct matmul *matmul)
{
    struct sizes sizes = sizes_of(matmul);
    capu_role role = matmul->accumulate ? CAPU_UPDATE : CAPU_WRITE;

    if (matmul->bias_gradient == NULL) {
        return LAUNCH_WITH(LAUNCH_NEEDS_PRODUCTS, context, matmul_backward_weight, matmul,
                           sizes.flops, LAUNCH_READ(matmul->output_gradient, sizes.output),
                           LAUNCH_READ(matmul->input, sizes.input),
                           capu_operand_of(matmul->weight_gradient, sizes.weight_gradient, role));
    }
    return LAUNCH_WITH(LAUNCH_NEEDS_PRODUCTS, context, matmul_backward_weight, matmul, sizes.flops,
                       LAUNCH_READ(matmul->output_gradient, sizes.output),
                       LAUNCH_READ(matmul->input, sizes.input),
                       capu_operand_of(matmul->weight_gradient, sizes.weight_gradient, role),
                       capu_operand_of(matmul->bias_gradient, sizes.bias_gradient, role));
}
