/*
 * dropout: it keeps the right share of the items, drops the same items backward, and draws
 * differently for a different counter.
 */
#include "kernels/dropout.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>

#define COUNT ((size_t)10007)

static void run_case(struct support *support, const void *shape)
{
    void *gradient = support_items(support, COUNT, 1.0f, 1.0f);
    struct dropout dropout = {
        .input = support_items(support, COUNT, 1.0f, 2.0f),
        .output = support_blank(support, COUNT),
        .gradient = gradient,
        .count = COUNT,
        .seed = 5,
        .counter = 9,
        .rate = *(const float *)shape,
        .element = support->element,
    };
    double scale = 1.0 / (1.0 - dropout.rate);
    size_t kept = 0;
    double expected = (double)COUNT * (1.0 - dropout.rate);

    ck_assert_int_eq(dropout_forward_host(NULL, &dropout), CAPU_OK);
    ck_assert_int_eq(dropout_backward_host(NULL, &dropout), CAPU_OK);
    for (size_t i = 0; i < COUNT; i++) {
        if (support_item(support, dropout.output, i) == 0.0) {
            ck_assert_double_eq(support_item(support, gradient, i), 0.0);
            continue;
        }
        kept++;
        support_stored(support, "output", i, support_item(support, dropout.output, i),
                       support_item(support, dropout.input, i) * scale, 1e-6);
        support_stored(support, "gradient", i, support_item(support, gradient, i), scale, 1e-6);
    }
    /* Five standard deviations of a binomial draw; the seed is fixed. */
    ck_assert_double_le(fabs((double)kept - expected), 5.0 * sqrt(expected * dropout.rate));
    support_keep(support, dropout.output, support_bytes(support, COUNT));
    support_keep(support, gradient, support_bytes(support, COUNT));
}

static const float rates[] = {0.0f, 0.1f, 0.5f, 0.9f};

START_TEST(the_right_share_is_kept)
{
    support_sweep(run_case, &rates[_i]);
}
END_TEST

START_TEST(the_right_share_is_kept_in_bf16)
{
    support_sweep_in(ELEMENT_BF16, run_case, &rates[_i]);
}
END_TEST

START_TEST(draws_depend_on_seed_and_counter)
{
    static const uint64_t draws[][2] = {{1, 1}, {1, 2}, {2, 1}};
    float input[1000];
    float output[3][1000];

    for (int i = 0; i < 1000; i++) {
        input[i] = 1.0f;
    }
    for (int i = 0; i < 3; i++) {
        struct dropout dropout = {.input = input,
                                  .output = output[i],
                                  .count = 1000,
                                  .seed = draws[i][0],
                                  .counter = draws[i][1],
                                  .rate = 0.5f};
        ck_assert_int_eq(dropout_forward_host(NULL, &dropout), CAPU_OK);
    }
    for (int i = 0; i < 3; i++) {
        int same = 0;

        for (int k = 0; k < 1000; k++) {
            same += output[i][k] == output[(i + 1) % 3][k];
        }
        /* About half of 1000, within six standard deviations. */
        ck_assert_int_gt(same, 405);
        ck_assert_int_lt(same, 595);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dropout");
    TCase *tests = tcase_create("dropout");

    tcase_add_loop_test(tests, the_right_share_is_kept, 0, sizeof(rates) / sizeof(rates[0]));
    tcase_add_loop_test(tests, the_right_share_is_kept_in_bf16, 0,
                        sizeof(rates) / sizeof(rates[0]));
    tcase_add_test(tests, draws_depend_on_seed_and_counter);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
