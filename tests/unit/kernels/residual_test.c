/* residual: the sum, and its gradient for both sides or only one. */
#include "kernels/residual.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <string.h>

static const size_t counts[] = {1, 21, 40001};

static void check(const struct support *support, const struct residual *residual,
                  const void *input_before, const void *branch_before)
{
    for (size_t i = 0; i < residual->count; i++) {
        double gradient = support_item(support, residual->output_gradient, i);

        support_stored(support, "output", i, support_item(support, residual->output, i),
                       support_item(support, residual->input, i) +
                           support_item(support, residual->branch, i),
                       1e-7);
        support_stored(support, "input_gradient", i,
                       support_item(support, residual->input_gradient, i),
                       support_item(support, input_before, i) + gradient, 1e-7);
        support_stored(support, "branch_gradient", i,
                       support_item(support, residual->branch_gradient, i),
                       support_item(support, branch_before, i) + gradient, 1e-7);
    }
}

static void run_case(struct support *support, const void *shape)
{
    size_t count = *(const size_t *)shape;
    void *gradient = support_items(support, count, -1.0f, 1.0f);
    void *input_before = support_items(support, count, -1.0f, 1.0f);
    void *branch_before = support_items(support, count, -1.0f, 1.0f);
    struct residual residual = {.input = support_items(support, count, -1.0f, 1.0f),
                                .branch = support_items(support, count, -1.0f, 1.0f),
                                .output = support_blank(support, count),
                                .output_gradient = gradient,
                                .input_gradient = support_blank(support, count),
                                .branch_gradient = support_blank(support, count),
                                .count = count,
                                .element = support->element};
    void *branch_gradient = residual.branch_gradient;

    memcpy(residual.input_gradient, input_before, support_bytes(support, count));
    memcpy(branch_gradient, branch_before, support_bytes(support, count));
    ck_assert_int_eq(residual_forward_host(NULL, &residual), CAPU_OK);
    ck_assert_int_eq(residual_backward_host(NULL, &residual), CAPU_OK);
    if (support->is_reference_due) {
        check(support, &residual, input_before, branch_before);
    }
    support_keep(support, residual.output, support_bytes(support, count));
    support_keep(support, residual.input_gradient, support_bytes(support, count));
    support_keep(support, branch_gradient, support_bytes(support, count));
    residual.branch_gradient = NULL;
    ck_assert_int_eq(residual_backward_host(NULL, &residual), CAPU_OK);
    support_keep(support, residual.input_gradient, support_bytes(support, count));
    support_keep(support, branch_gradient, support_bytes(support, count));
}

/* Without a gradient for the branch only that of the input is added to. */
START_TEST(the_branch_gradient_is_optional)
{
    float gradient[] = {0.5f, -2.0f};
    float input_gradient[] = {1.0f, 1.0f};
    struct residual residual = {
        .output_gradient = gradient, .input_gradient = input_gradient, .count = 2};

    ck_assert_int_eq(residual_backward_host(NULL, &residual), CAPU_OK);
    ck_assert_float_eq(input_gradient[0], 1.5f);
    ck_assert_float_eq(input_gradient[1], -1.0f);
}
END_TEST

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, counts)

int main(void)
{
    Suite *suite = suite_create("residual");
    TCase *tests = tcase_create("residual");

    add_reference_tests(tests);
    tcase_add_test(tests, the_branch_gradient_is_optional);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
