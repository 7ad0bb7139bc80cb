/* gradient_norm compared with double precision, for fewer items than parts and for many more. */
#include "kernels/gradient_norm.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>

static const size_t counts[] = {1, 63, 64, 65, 300007};

static void run_case(struct support *support, const void *shape)
{
    size_t count = *(const size_t *)shape;
    const float *gradient = support_floats(support, count, -1.0f, 1.0f);
    struct gradient_norm norm = {
        .gradient = gradient, .count = count, .norm = support_output(support, 1)};
    double sum = 0.0;

    ck_assert_int_eq(gradient_norm_host(NULL, &norm), CAPU_OK);
    for (size_t i = 0; i < count; i++) {
        sum += (double)gradient[i] * gradient[i];
    }
    support_near("norm", 0, *norm.norm, sqrt(sum), 1e-6);
    support_keep(support, norm.norm, sizeof(float));
}

SUPPORT_TESTS(run_case, counts)

int main(void)
{
    Suite *suite = suite_create("gradient_norm");
    TCase *tests = tcase_create("gradient_norm");

    add_reference_tests(tests);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
