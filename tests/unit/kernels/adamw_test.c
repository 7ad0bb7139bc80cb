/* adamw: three steps compared with double precision, and one update compared with one in parts. */
#include "kernels/adamw.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <string.h>

static const size_t counts[] = {1, 19, 40001};

static struct adamw make(struct support *support, size_t count)
{
    return (struct adamw){
        .parameter = support_floats(support, count, -1.0f, 1.0f),
        .first_moment = support_floats(support, count, 0.0f, 0.0f),
        .second_moment = support_floats(support, count, 0.0f, 0.0f),
        .gradient = support_floats(support, count, -1.0f, 1.0f),
        .count = count,
        .rate = 0.01f,
        .beta1 = 0.9f,
        .beta2 = 0.95f,
        .epsilon = 1e-8f,
        .decay = 0.1f,
        .gradient_scale = 0.5f,
    };
}

static double reference(double parameter, double gradient)
{
    double first = 0.0;
    double second = 0.0;

    for (int step = 1; step <= 3; step++) {
        first = 0.9 * first + 0.1 * gradient;
        second = 0.95 * second + 0.05 * gradient * gradient;
        parameter -= 0.01 * (first / (1.0 - pow(0.9, step)) /
                                 (sqrt(second / (1.0 - pow(0.95, step))) + 1e-8) +
                             0.1 * parameter);
    }
    return parameter;
}

static void run_case(struct support *support, const void *shape)
{
    size_t count = *(const size_t *)shape;
    struct adamw adamw = make(support, count);
    float *start = support_output(support, count);

    memcpy(start, adamw.parameter, count * sizeof(float));
    for (adamw.step = 1; adamw.step <= 3; adamw.step++) {
        ck_assert_int_eq(adamw_update_host(NULL, &adamw), CAPU_OK);
    }
    for (size_t i = 0; support->is_reference_due && i < count; i++) {
        support_near("parameter", i, adamw.parameter[i],
                     reference(start[i], 0.5 * adamw.gradient[i]), 2e-6);
    }
    support_keep(support, adamw.parameter, count * sizeof(float));
    support_keep(support, adamw.second_moment, count * sizeof(float));
}

/* Two copies of the same tensors: one is updated as a whole, the other in two parts of odd size. */
START_TEST(updating_in_parts_gives_the_same_result)
{
    struct support support = {.seed = 3};
    struct support again = {.seed = 3};
    struct adamw whole = make(&support, 40001);
    struct adamw parts = make(&again, 40001);
    struct adamw second = parts;

    whole.step = parts.step = second.step = 1;
    parts.count = 16389;
    second.count -= parts.count;
    second.parameter += parts.count;
    second.first_moment += parts.count;
    second.second_moment += parts.count;
    second.gradient += parts.count;
    ck_assert_int_eq(adamw_update_host(NULL, &whole), CAPU_OK);
    ck_assert_int_eq(adamw_update_host(NULL, &second), CAPU_OK);
    ck_assert_int_eq(adamw_update_host(NULL, &parts), CAPU_OK);
    ck_assert_mem_eq(whole.parameter, parts.parameter, 40001 * sizeof(float));
    while (support.buffer_count > 0) {
        free(support.buffers[--support.buffer_count]);
        free(again.buffers[--again.buffer_count]);
    }
}
END_TEST

/*
 * After every step the working weights are the rounded masters. A master accumulates steps that are
 * too small for bf16, which has no number between 1 and 1.0078.
 */
START_TEST(working_weights_are_rounded_masters)
{
    enum { COUNT = 20011 };
    struct support support = {.seed = 5};
    struct adamw adamw = make(&support, COUNT);
    struct adamw alone = make(&support, COUNT);
    uint16_t *working = support_buffer(&support, COUNT * sizeof(*working));
    float one = 1.0f;
    float first = 0.0f;
    float second = 0.0f;
    float gradient = 1.0f;
    uint16_t rounded = 0;
    struct adamw small = {&one,  &first, &second, &gradient, 1, 1e-4f,   0.9f,
                          0.95f, 1e-8f,  0.0f,    1.0f,      1, &rounded};

    memcpy(alone.parameter, adamw.parameter, COUNT * sizeof(float));
    alone.gradient = adamw.gradient;
    adamw.working = working;
    for (uint32_t step = 1; step <= 3; step++) {
        adamw.step = alone.step = step;
        ck_assert_int_eq(adamw_update_host(NULL, &adamw), CAPU_OK);
        ck_assert_int_eq(adamw_update_host(NULL, &alone), CAPU_OK);
        for (size_t i = 0; i < COUNT; i++) {
            ck_assert_uint_eq(working[i], element_round(adamw.parameter[i]));
        }
    }
    ck_assert_mem_eq(adamw.parameter, alone.parameter, COUNT * sizeof(float));
    for (small.step = 1; small.step <= 100; small.step++) {
        ck_assert_int_eq(adamw_update_host(NULL, &small), CAPU_OK);
    }
    support_near("master", 0, one, 0.99, 1e-5);
    ck_assert_uint_eq(rounded, element_round(0.99f));
    while (support.buffer_count > 0) {
        free(support.buffers[--support.buffer_count]);
    }
}
END_TEST

SUPPORT_TESTS(run_case, counts)

int main(void)
{
    Suite *suite = suite_create("adamw");
    TCase *tests = tcase_create("adamw");

    add_reference_tests(tests);
    tcase_add_test(tests, updating_in_parts_gives_the_same_result);
    tcase_add_test(tests, working_weights_are_rounded_masters);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
