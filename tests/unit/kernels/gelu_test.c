/* gelu compared with double precision, its gradient with differences of that reference. */
#include "kernels/gelu.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <string.h>

static const size_t counts[] = {1, 21, 40001};

static double reference(double x)
{
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static void run_case(struct support *support, const void *shape)
{
    size_t count = *(const size_t *)shape;
    void *gradient = support_items(support, count, -1.0f, 1.0f);
    void *before = support_blank(support, count);
    struct gelu gelu = {.input = support_items(support, count, -6.0f, 6.0f),
                        .output = support_blank(support, count),
                        .gradient = gradient,
                        .count = count,
                        .element = support->element};

    memcpy(before, gradient, support_bytes(support, count));
    ck_assert_int_eq(gelu_forward_host(NULL, &gelu), CAPU_OK);
    ck_assert_int_eq(gelu_backward_host(NULL, &gelu), CAPU_OK);
    for (size_t i = 0; support->is_reference_due && i < count; i++) {
        double x = support_item(support, gelu.input, i);
        double slope = (reference(x + 1e-5) - reference(x - 1e-5)) / 2e-5;

        support_stored(support, "output", i, support_item(support, gelu.output, i), reference(x),
                       1e-6);
        support_stored(support, "gradient", i, support_item(support, gradient, i),
                       support_item(support, before, i) * slope, 3e-6);
    }
    support_keep(support, gelu.output, support_bytes(support, count));
    support_keep(support, gradient, support_bytes(support, count));
}

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, counts)

int main(void)
{
    Suite *suite = suite_create("gelu");
    TCase *tests = tcase_create("gelu");

    add_reference_tests(tests);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
