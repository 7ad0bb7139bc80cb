/* initialise, and its random generator compared with the published test vectors. */
#include "kernels/initialise.h"

#include "kernels/random.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>

#define COUNT ((size_t)50003)

static void moments(const float *values, double *mean, double *deviation)
{
    double sum = 0.0;
    double squares = 0.0;

    for (size_t i = 0; i < COUNT; i++) {
        sum += values[i];
        squares += (double)values[i] * values[i];
    }
    *mean = sum / (double)COUNT;
    *deviation = sqrt(squares / (double)COUNT - *mean * *mean);
}

static void run_case(struct support *support, const void *shape)
{
    struct initialise fill = *(const struct initialise *)shape;
    double expected_mean = fill.a;
    double expected_deviation = 0.0;
    double mean;
    double deviation;

    fill.output = support_output(support, COUNT);
    fill.count = COUNT;
    ck_assert_int_eq(initialise_host(NULL, &fill), CAPU_OK);
    moments(fill.output, &mean, &deviation);
    if (fill.kind == INITIALISE_UNIFORM) {
        expected_mean = (fill.a + fill.b) / 2.0;
        expected_deviation = (fill.b - fill.a) / sqrt(12.0);
    } else if (fill.kind == INITIALISE_NORMAL) {
        expected_deviation = fill.b;
    }
    /* The mean of 50,000 numbers has a standard error of 0.0045 deviations; allow five of them. */
    ck_assert_double_le(fabs(mean - expected_mean), 0.023 * expected_deviation);
    ck_assert_double_le(fabs(deviation - expected_deviation), 0.02 * expected_deviation);
    support_keep(support, fill.output, COUNT * sizeof(float));
}

static const struct initialise fills[] = {
    {.kind = INITIALISE_CONSTANT, .a = 0.5f, .b = 1.0f},
    {.kind = INITIALISE_UNIFORM, .a = -1.0f, .b = 3.0f, .seed = 1, .counter = 2},
    {.kind = INITIALISE_NORMAL, .a = 1.0f, .b = 0.02f, .seed = 1, .counter = 3},
};

START_TEST(moments_are_right)
{
    support_sweep(run_case, &fills[_i]);
}
END_TEST

/* A master and its working weights start with the same numbers, rounded in the latter. */
START_TEST(working_weights_are_rounded_masters)
{
    struct support support = {.seed = 1};
    struct initialise fill = fills[_i];
    float *whole = support_output(&support, COUNT);
    uint16_t *rounded = support_buffer(&support, COUNT * sizeof(*rounded));

    fill.count = COUNT;
    fill.output = whole;
    ck_assert_int_eq(initialise_host(NULL, &fill), CAPU_OK);
    fill.output = rounded;
    fill.element = ELEMENT_BF16;
    ck_assert_int_eq(initialise_host(NULL, &fill), CAPU_OK);
    for (size_t i = 0; i < COUNT; i++) {
        ck_assert_uint_eq(rounded[i], element_round(whole[i]));
    }
    while (support.buffer_count > 0) {
        free(support.buffers[--support.buffer_count]);
    }
}
END_TEST

/* The test vectors published with the generator. */
START_TEST(the_generator_gives_the_published_numbers)
{
    struct random_block zeros = random_draw(0, 0, 0);
    struct random_block ones = random_draw(UINT64_MAX, UINT64_MAX, UINT64_MAX);

    ck_assert_uint_eq(zeros.word[0], 0x6627e8d5u);
    ck_assert_uint_eq(zeros.word[1], 0xe169c58du);
    ck_assert_uint_eq(zeros.word[2], 0xbc57ac4cu);
    ck_assert_uint_eq(zeros.word[3], 0x9b00dbd8u);
    ck_assert_uint_eq(ones.word[0], 0x408f276du);
    ck_assert_uint_eq(ones.word[1], 0x41c83b0eu);
    ck_assert_uint_eq(ones.word[2], 0xa20bc7c6u);
    ck_assert_uint_eq(ones.word[3], 0x6d5451fdu);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("initialise");
    TCase *tests = tcase_create("initialise");

    tcase_add_loop_test(tests, moments_are_right, 0, sizeof(fills) / sizeof(fills[0]));
    tcase_add_test(tests, the_generator_gives_the_published_numbers);
    tcase_add_loop_test(tests, working_weights_are_rounded_masters, 0,
                        sizeof(fills) / sizeof(fills[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
