/* Which signature is predicted: shapes that repeat with any period, and shapes at random. */
#include "runtime/plan/label_records.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <stdbool.h>
#include <string.h>

/* Adds a signature and returns whether it had been predicted. */
static bool is_predicted(struct predictor *predictor, uint64_t signature)
{
    uint64_t predicted = 0;

    if (predictor->count > 0) {
        predictor_predict(predictor, &predicted);
    }
    predictor_add(predictor, signature);
    return predicted == signature;
}

static const char *const periods[] = {
    "AAAB",
    "AB",
    "AABB",
    "AAAAAAAB",
    "ABAC",
    "AAABAAAC",
    "AAABAAC",
    "ABCDEFGH",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB", /* length 31: the predictor remembers two periods */
};

/* From the third period on there is no mistake, also after more iterations than are remembered. */
START_TEST(a_repeating_sequence_is_predicted)
{
    const char *period = periods[_i];
    size_t length = strlen(period);
    struct predictor predictor = {0};

    for (size_t i = 0; i < 5 * length + 3 * PREDICTOR_LENGTH; i++) {
        bool is_right = is_predicted(&predictor, (uint64_t)period[i % length]);

        ck_assert_msg(is_right || i < 2 * length, "%s: iteration %zu was not predicted", period, i);
    }
}
END_TEST

/* A rare shape among many of another: only the rare one is mispredicted, even in the second
   period. */
START_TEST(a_rare_shape_disturbs_no_other)
{
    static const size_t lengths[] = {3, 4, 10, 30, 40};
    size_t length = lengths[_i];
    struct predictor predictor = {0};

    for (size_t i = 0; i < 2 * length; i++) {
        uint64_t signature = i % length == length - 1 ? 'B' : 'A';
        bool is_right = is_predicted(&predictor, signature);

        ck_assert_msg(is_right || signature == 'B' || i == 0,
                      "period %zu: iteration %zu was not predicted", length, i);
    }
}
END_TEST

/* A random sequence cannot be predicted. The common shape must rarely be mistaken for the rare
   one. */
START_TEST(at_random_the_common_shape_is_predicted)
{
    struct predictor predictor = {0};
    uint64_t state = 1;
    size_t wrong = 0;
    size_t rare = 0;

    for (size_t i = 0; i < 4000; i++) {
        bool is_rare = random_next(&state) % 10 == 0;

        rare += is_rare;
        wrong += !is_predicted(&predictor, is_rare ? 'B' : 'A');
    }
    ck_assert_uint_gt(rare, 300);
    ck_assert_uint_lt(wrong, 2 * rare);
}
END_TEST

START_TEST(after_a_new_shape_the_most_frequent_is_predicted)
{
    struct predictor predictor = {0};
    uint64_t signature = 0;

    predictor_add(&predictor, 7);
    ck_assert_uint_eq(predictor_predict(&predictor, &signature), 0);
    ck_assert_uint_eq(signature, 7);
    predictor_add(&predictor, 7);
    ck_assert_uint_eq(predictor_predict(&predictor, &signature), 1);
    predictor_add(&predictor, 9);
    ck_assert_uint_eq(predictor_newest(&predictor), 9);
    ck_assert_uint_eq(predictor_predict(&predictor, &signature), 0);
    ck_assert_uint_eq(signature, 7);
    predictor_add(&predictor, 9); /* as frequent as 7, and more recent */
    predictor_add(&predictor, 4);
    ck_assert_uint_eq(predictor_predict(&predictor, &signature), 0);
    ck_assert_uint_eq(signature, 9);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime predictor");
    TCase *tcase = tcase_create("predictor");

    tcase_add_loop_test(tcase, a_repeating_sequence_is_predicted, 0,
                        sizeof(periods) / sizeof(periods[0]));
    tcase_add_loop_test(tcase, a_rare_shape_disturbs_no_other, 0, 5);
    tcase_add_test(tcase, at_random_the_common_shape_is_predicted);
    tcase_add_test(tcase, after_a_new_shape_the_most_frequent_is_predicted);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
