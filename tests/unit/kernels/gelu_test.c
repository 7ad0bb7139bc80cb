/* gelu against double precision; its slope against the difference of that reference. */
#include "kernels/gelu.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>

static const size_t counts[] = {1, 21, 40001};

static double reference(double x)
{
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static void run_case(struct support *support, const void *shape)
{
    size_t count = *(const size_t *)shape;
    float *input = support_floats(support, count, -6.0f, 6.0f);
    float *gradient = support_floats(support, count, -1.0f, 1.0f);
    float *before = support_output(support, count);
    struct gelu gelu = {.input = input,
                        .output = support_output(support, count),
                        .gradient = gradient,
                        .count = count};

    for (size_t i = 0; i < count; i++) {
        before[i] = gradient[i];
    }
    ck_assert_int_eq(gelu_forward_host(NULL, &gelu), CAPU_OK);
    ck_assert_int_eq(gelu_backward_host(NULL, &gelu), CAPU_OK);
    for (size_t i = 0; support->is_reference_due && i < count; i++) {
        double slope = (reference(input[i] + 1e-5) - reference(input[i] - 1e-5)) / 2e-5;

        support_near("output", i, gelu.output[i], reference(input[i]), 1e-6);
        support_near("gradient", i, gradient[i], before[i] * slope, 3e-6);
    }
    support_keep(support, gelu.output, count * sizeof(float));
    support_keep(support, gradient, count * sizeof(float));
}

START_TEST(matches_reference)
{
    support_sweep(run_case, &counts[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gelu");
    TCase *tests = tcase_create("gelu");

    tcase_add_loop_test(tests, matches_reference, 0, sizeof(counts) / sizeof(counts[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
