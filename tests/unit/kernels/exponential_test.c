/* exponential: error compared with the mathematics library, and the ends of its range. */
#include "kernels/exponential.h"

#include "tests/support/suite.h"

#include <math.h>

START_TEST(error_is_below_two_units)
{
    for (int i = -8690; i <= 8790; i++) {
        float x = (float)i * 0.01f + 0.001f;
        double expected = exp((double)x);

        ck_assert_double_le(fabs(exponential(x) - expected), 2.4e-7 * expected);
        ck_assert_double_le(fabs(exponential_tanh(x) - tanh((double)x)), 3e-7);
    }
    ck_assert_float_eq(exponential(0.0f), 1.0f);
}
END_TEST

START_TEST(extreme_arguments_give_sensible_results)
{
    ck_assert_float_eq(exponential(-88.0f), 0.0f);
    ck_assert_float_eq(exponential(-INFINITY), 0.0f);
    ck_assert_float_finite(exponential(INFINITY));
    ck_assert_float_gt(exponential(INFINITY), 1e38f);
    ck_assert_float_nan(exponential(NAN));
    ck_assert_float_eq(exponential_tanh(50.0f), 1.0f);
    ck_assert_float_eq(exponential_tanh(-50.0f), -1.0f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exponential");
    TCase *tests = tcase_create("exponential");

    tcase_add_test(tests, error_is_below_two_units);
    tcase_add_test(tests, extreme_arguments_give_sensible_results);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
