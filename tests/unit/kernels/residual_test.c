/* residual: the sum, and the gradient to both sides or to one. */
#include "kernels/residual.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <string.h>

static const size_t counts[] = {1, 21, 40001};

static void run_case(struct support *support, const void *shape)
{
    size_t count = *(const size_t *)shape;
    const float *input = support_floats(support, count, -1.0f, 1.0f);
    const float *branch = support_floats(support, count, -1.0f, 1.0f);
    const float *gradient = support_floats(support, count, -1.0f, 1.0f);
    float *before = support_floats(support, 2 * count, -1.0f, 1.0f);
    float *after = support_output(support, 2 * count);
    struct residual residual = {.input = input,
                                .branch = branch,
                                .output = support_output(support, count),
                                .output_gradient = gradient,
                                .input_gradient = after,
                                .branch_gradient = after + count,
                                .count = count};

    memcpy(after, before, 2 * count * sizeof(float));
    ck_assert_int_eq(residual_forward_host(NULL, &residual), CAPU_OK);
    ck_assert_int_eq(residual_backward_host(NULL, &residual), CAPU_OK);
    residual.branch_gradient = NULL;
    ck_assert_int_eq(residual_backward_host(NULL, &residual), CAPU_OK);
    for (size_t i = 0; support->is_reference_due && i < count; i++) {
        support_near("output", i, residual.output[i], (double)input[i] + branch[i], 1e-7);
        support_near("input_gradient", i, after[i], before[i] + 2.0 * gradient[i], 3e-7);
        support_near("branch_gradient", i, after[count + i],
                     (double)before[count + i] + gradient[i], 1e-7);
    }
    support_keep(support, residual.output, count * sizeof(float));
    support_keep(support, after, 2 * count * sizeof(float));
}

START_TEST(matches_reference)
{
    support_sweep(run_case, &counts[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("residual");
    TCase *tests = tcase_create("residual");

    tcase_add_loop_test(tests, matches_reference, 0, sizeof(counts) / sizeof(counts[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
