/* relu: values, gradients, and that a NaN passes. */
#include "kernels/relu.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <string.h>

static const size_t counts[] = {1, 3, 17, 16384, 50001};

static void run_case(struct support *support, const void *shape)
{
    size_t count = *(const size_t *)shape;
    float *input = support_floats(support, count, -1.0f, 1.0f);
    float *gradient = support_floats(support, count, -1.0f, 1.0f);
    float *output = support_output(support, count);
    float *before = support_output(support, count);
    struct relu relu = {.input = input, .output = output, .gradient = gradient, .count = count};

    memcpy(before, gradient, count * sizeof(float));
    ck_assert_int_eq(relu_forward_host(NULL, &relu), CAPU_OK);
    ck_assert_int_eq(relu_backward_host(NULL, &relu), CAPU_OK);
    for (size_t i = 0; support->is_reference_due && i < count; i++) {
        support_near("output", i, output[i], input[i] > 0.0f ? input[i] : 0.0, 0.0);
        support_near("gradient", i, gradient[i], input[i] > 0.0f ? before[i] : 0.0, 0.0);
    }
    support_keep(support, output, count * sizeof(float));
    support_keep(support, gradient, count * sizeof(float));
}

START_TEST(matches_reference)
{
    support_sweep(run_case, &counts[_i]);
}
END_TEST

START_TEST(lets_nan_through)
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

int main(void)
{
    Suite *suite = suite_create("relu");
    TCase *tests = tcase_create("relu");

    tcase_add_loop_test(tests, matches_reference, 0, sizeof(counts) / sizeof(counts[0]));
    tcase_add_test(tests, lets_nan_through);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
