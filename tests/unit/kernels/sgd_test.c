/* sgd: three steps compared with double precision, and working weights with their masters. */
#include "kernels/sgd.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <stdlib.h>

static const size_t counts[] = {1, 19, 40000};

static struct sgd make(struct support *support, size_t count)
{
    return (struct sgd){
        .parameter = support_floats(support, count, -1.0f, 1.0f),
        .velocity = support_floats(support, count, 0.0f, 0.0f),
        .gradient = support_floats(support, count, -1.0f, 1.0f),
        .count = count,
        .rate = 0.1f,
        .momentum = 0.9f,
        .decay = 0.01f,
    };
}

static void run_case(struct support *support, const void *shape)
{
    size_t count = *(const size_t *)shape;
    struct sgd sgd = make(support, count);
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
            velocity = 0.9 * velocity + sgd.gradient[i] + 0.01 * parameter;
            parameter -= 0.1 * velocity;
        }
        support_near("parameter", i, sgd.parameter[i], parameter, 1e-6);
        support_near("velocity", i, sgd.velocity[i], velocity, 1e-6);
    }
    support_keep(support, sgd.parameter, count * sizeof(float));
    support_keep(support, sgd.velocity, count * sizeof(float));
}

/*
 * After every step the working weights are the rounded masters. A master accumulates steps that are
 * too small for bf16, which has no number between 1 and 0.996.
 */
START_TEST(working_weights_are_rounded_masters)
{
    enum { COUNT = 20011 };
    struct support support = {.seed = 5};
    struct support again = {.seed = 5};
    struct sgd sgd = make(&support, COUNT);
    struct sgd alone = make(&again, COUNT);
    float one = 1.0f;
    float velocity = 0.0f;
    float gradient = 1.0f;
    uint16_t rounded = 0;
    struct sgd small = {&one, &velocity, &gradient, 1, 1e-4f, 0.0f, 0.0f, &rounded};

    sgd.working = support_buffer(&support, COUNT * sizeof(*sgd.working));
    for (int step = 0; step < 3; step++) {
        ck_assert_int_eq(sgd_update_host(NULL, &sgd), CAPU_OK);
        ck_assert_int_eq(sgd_update_host(NULL, &alone), CAPU_OK);
        for (size_t i = 0; i < COUNT; i++) {
            ck_assert_uint_eq(sgd.working[i], element_round(sgd.parameter[i]));
        }
    }
    ck_assert_mem_eq(sgd.parameter, alone.parameter, COUNT * sizeof(float));
    for (int step = 0; step < 100; step++) {
        ck_assert_int_eq(sgd_update_host(NULL, &small), CAPU_OK);
    }
    support_near("master", 0, one, 0.99, 1e-5);
    ck_assert_uint_eq(rounded, element_round(0.99f));
    while (support.buffer_count > 0) {
        free(support.buffers[--support.buffer_count]);
    }
    while (again.buffer_count > 0) {
        free(again.buffers[--again.buffer_count]);
    }
}
END_TEST

SUPPORT_TESTS(run_case, counts)

int main(void)
{
    Suite *suite = suite_create("sgd");
    TCase *tests = tcase_create("sgd");

    add_reference_tests(tests);
    tcase_add_test(tests, working_weights_are_rounded_masters);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
