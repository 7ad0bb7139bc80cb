/* relu: values, gradients, and propagation of NaN. */
#include "kernels/relu.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <string.h>

static const size_t counts[] = {1, 3, 17, 16384, 50001};

/* Results are inputs or zeros, so they are exact in both element types. */
static void run_case(struct support *support, const void *shape)
{
    size_t count = *(const size_t *)shape;
    size_t bytes = support_bytes(support, count);
    void *gradient = support_items(support, count, -1.0f, 1.0f);
    void *before = support_blank(support, count);
    struct relu relu = {.input = support_items(support, count, -1.0f, 1.0f),
                        .output = support_blank(support, count),
                        .gradient = gradient,
                        .count = count,
                        .element = support->element};

    memcpy(before, gradient, bytes);
    ck_assert_int_eq(relu_forward_host(NULL, &relu), CAPU_OK);
    ck_assert_int_eq(relu_backward_host(NULL, &relu), CAPU_OK);
    for (size_t i = 0; support->is_reference_due && i < count; i++) {
        double input = support_item(support, relu.input, i);

        support_near("output", i, support_item(support, relu.output, i), input > 0.0 ? input : 0.0,
                     0.0);
        support_near("gradient", i, support_item(support, gradient, i),
                     input > 0.0 ? support_item(support, before, i) : 0.0, 0.0);
    }
    support_keep(support, relu.output, bytes);
    support_keep(support, gradient, bytes);
}

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, counts)

START_TEST(nan_is_propagated)
{
    float input[20];
    float output[20];
    float gradient[20];
    struct relu relu = {.input = input, .output = output, .gradient = gradient, .count = 20};

    for (int i = 0; i < 20; i++) {
        input[i] = NAN;
        gradient[i] = 1.0f;
    }
    ck_assert_int_eq(relu_forward_host(NULL, &relu), CAPU_OK);
    ck_assert_int_eq(relu_backward_host(NULL, &relu), CAPU_OK);
    for (int i = 0; i < 20; i++) {
        ck_assert_float_nan(output[i]);
        ck_assert_float_nan(gradient[i]);
    }
}
END_TEST

START_TEST(nan_is_propagated_in_bf16)
{
    uint16_t input[2] = {element_round(NAN), element_round(-2.0f)};
    uint16_t output[2] = {0};
    uint16_t gradient[2] = {element_round(1.0f), element_round(1.0f)};
    struct relu relu = {input, output, gradient, 2, ELEMENT_BF16};

    ck_assert_int_eq(relu_forward_host(NULL, &relu), CAPU_OK);
    ck_assert_int_eq(relu_backward_host(NULL, &relu), CAPU_OK);
    ck_assert_float_nan(element_widen(output[0]));
    ck_assert_float_nan(element_widen(gradient[0]));
    ck_assert_float_eq(element_widen(output[1]), 0.0f);
    ck_assert_float_eq(element_widen(gradient[1]), 0.0f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("relu");
    TCase *tests = tcase_create("relu");

    add_reference_tests(tests);
    tcase_add_test(tests, nan_is_propagated);
    tcase_add_test(tests, nan_is_propagated_in_bf16);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
