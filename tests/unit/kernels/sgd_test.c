/* sgd: three steps against double precision. */
#include "kernels/sgd.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

static const size_t counts[] = {1, 19, 40000};

static void run_case(struct support *support, const void *shape)
{
    size_t count = *(const size_t *)shape;
    float *gradient = support_floats(support, count, -1.0f, 1.0f);
    struct sgd sgd = {
        .parameter = support_floats(support, count, -1.0f, 1.0f),
        .velocity = support_floats(support, count, 0.0f, 0.0f),
        .gradient = gradient,
        .count = count,
        .rate = 0.1f,
        .momentum = 0.9f,
        .decay = 0.01f,
    };
    float *start = support_output(support, count);

    for (size_t i = 0; i < count; i++) {
        start[i] = sgd.parameter[i];
    }
    for (int step = 0; step < 3; step++) {
        ck_assert_int_eq(sgd_update_host(NULL, &sgd), CAPU_OK);
    }
    for (size_t i = 0; support->is_reference_due && i < count; i++) {
        double parameter = start[i];
        double velocity = 0.0;

        for (int step = 0; step < 3; step++) {
            velocity = 0.9 * velocity + gradient[i] + 0.01 * parameter;
            parameter -= 0.1 * velocity;
        }
        support_near("parameter", i, sgd.parameter[i], parameter, 1e-6);
        support_near("velocity", i, sgd.velocity[i], velocity, 1e-6);
    }
    support_keep(support, sgd.parameter, count * sizeof(float));
    support_keep(support, sgd.velocity, count * sizeof(float));
}

START_TEST(matches_reference)
{
    support_sweep(run_case, &counts[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sgd");
    TCase *tests = tcase_create("sgd");

    tcase_add_loop_test(tests, matches_reference, 0, sizeof(counts) / sizeof(counts[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
