/* matmul: all three products compared with double precision, with and without bias and adding. */
#include "kernels/matmul.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <string.h>

struct shape {
    uint32_t rows;
    uint32_t inputs;
    uint32_t outputs;
    uint32_t accumulate;
    int has_bias;
};

static const struct shape shapes[] = {
    {1, 1, 1, 0, 1},    {2, 3, 5, 0, 1},      {7, 129, 33, 1, 1},   {130, 17, 65, 0, 0},
    {64, 96, 10, 1, 0}, {300, 40, 270, 1, 1}, {128, 300, 10, 0, 1},
};

static void check_forward(const struct support *support, const struct matmul *matmul)
{
    for (size_t i = 0; i < (size_t)matmul->rows * matmul->outputs; i++) {
        size_t input = i / matmul->outputs * matmul->inputs;
        size_t weight = i % matmul->outputs * matmul->inputs;
        double sum =
            matmul->bias != NULL ? support_item(support, matmul->bias, i % matmul->outputs) : 0.0;

        for (size_t k = 0; k < matmul->inputs; k++) {
            sum += support_item(support, matmul->input, input + k) *
                   support_item(support, matmul->weight, weight + k);
        }
        support_stored(support, "output", i, support_item(support, matmul->output, i), sum, 1e-5);
    }
}

static void check_input_gradient(const struct support *support, const struct matmul *matmul)
{
    for (size_t i = 0; i < (size_t)matmul->rows * matmul->inputs; i++) {
        size_t gradient = i / matmul->inputs * matmul->outputs;
        double sum = 0.0;

        for (size_t k = 0; k < matmul->outputs; k++) {
            sum += support_item(support, matmul->output_gradient, gradient + k) *
                   support_item(support, matmul->weight, k * matmul->inputs + i % matmul->inputs);
        }
        support_stored(support, "input_gradient", i,
                       support_item(support, matmul->input_gradient, i), sum, 1e-5);
    }
}

/* Gradients of parameters are fp32, so their tolerance is the same for both element types. */
static void check_weight_gradient(const struct support *support, const struct matmul *matmul,
                                  const float *weight_before, const float *bias_before)
{
    for (size_t out = 0; out < matmul->outputs; out++) {
        double bias = matmul->accumulate ? bias_before[out] : 0.0;

        for (size_t in = 0; in < matmul->inputs; in++) {
            size_t at = out * matmul->inputs + in;
            double sum = matmul->accumulate ? weight_before[at] : 0.0;

            for (size_t row = 0; row < matmul->rows; row++) {
                sum += support_item(support, matmul->output_gradient, row * matmul->outputs + out) *
                       support_item(support, matmul->input, row * matmul->inputs + in);
            }
            support_near("weight_gradient", at, matmul->weight_gradient[at], sum, 2e-5);
        }
        for (size_t row = 0; row < matmul->rows; row++) {
            bias += support_item(support, matmul->output_gradient, row * matmul->outputs + out);
        }
        if (matmul->bias_gradient != NULL) {
            support_near("bias_gradient", out, matmul->bias_gradient[out], bias, 2e-5);
        }
    }
}

/* Gradients that are added to start with numbers, those that are overwritten start with NaN. */
static float *make_gradient(struct support *support, const struct shape *shape, size_t count,
                            float *before)
{
    float *gradient = shape->accumulate ? support_floats(support, count, -1.0f, 1.0f)
                                        : support_output(support, count);

    memcpy(before, gradient, count * sizeof(float));
    return gradient;
}

static void run_case(struct support *support, const void *argument)
{
    const struct shape *shape = argument;
    size_t input_items = (size_t)shape->rows * shape->inputs;
    size_t output_items = (size_t)shape->rows * shape->outputs;
    size_t weight_items = (size_t)shape->inputs * shape->outputs;
    float *weight_before = support_output(support, weight_items);
    float *bias_before = support_output(support, shape->outputs);
    void *bias = support_items(support, shape->outputs, -1.0f, 1.0f);
    float *bias_gradient = make_gradient(support, shape, shape->outputs, bias_before);
    struct matmul matmul = {
        .input = support_items(support, input_items, -1.0f, 1.0f),
        .weight = support_items(support, weight_items, -1.0f, 1.0f),
        .bias = shape->has_bias ? bias : NULL,
        .output = support_blank(support, output_items),
        .output_gradient = support_items(support, output_items, -1.0f, 1.0f),
        .input_gradient = support_blank(support, input_items),
        .weight_gradient = make_gradient(support, shape, weight_items, weight_before),
        .bias_gradient = shape->has_bias ? bias_gradient : NULL,
        .rows = shape->rows,
        .inputs = shape->inputs,
        .outputs = shape->outputs,
        .accumulate = shape->accumulate,
        .element = support->element,
    };

    ck_assert_int_eq(matmul_forward_host(NULL, &matmul), CAPU_OK);
    ck_assert_int_eq(matmul_backward_input_host(NULL, &matmul), CAPU_OK);
    ck_assert_int_eq(matmul_backward_weight_host(NULL, &matmul), CAPU_OK);
    if (support->is_reference_due) {
        check_forward(support, &matmul);
        check_input_gradient(support, &matmul);
        check_weight_gradient(support, &matmul, weight_before, bias_before);
    }
    support_keep(support, matmul.output, support_bytes(support, output_items));
    support_keep(support, matmul.input_gradient, support_bytes(support, input_items));
    support_keep(support, matmul.weight_gradient, weight_items * sizeof(float));
    support_keep(support, bias_gradient, shape->outputs * sizeof(float));
}

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, shapes)

int main(void)
{
    Suite *suite = suite_create("matmul");
    TCase *tests = tcase_create("matmul");

    add_reference_tests(tests);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
