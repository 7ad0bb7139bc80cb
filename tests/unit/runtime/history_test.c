/* Which signature is predicted: shapes in turn, whatever the period, and shapes at random. */
#include "runtime/history.h"

#include "device/random.h"
#include "tests/support/suite.h"

#include <stdbool.h>
#include <string.h>

static const char *const label = "train";

/* Adds a signature, having predicted it or not. */
static bool is_predicted(struct histories *histories, uint64_t iteration, uint64_t signature)
{
    const struct history *history = history_find(histories, label);
    uint64_t predicted = 0;

    if (history != NULL) {
        history_predict(history, &predicted);
    }
    history_add(histories, label, iteration, signature);
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
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB", /* 31: two of them fit into what is remembered */
};

/* From the third time on without a mistake, and once that is more than is remembered, too. */
START_TEST(what_comes_in_turn_is_predicted)
{
    const char *period = periods[_i];
    size_t length = strlen(period);
    struct histories histories = {0};

    for (size_t i = 0; i < 5 * length + 3 * HISTORY_LENGTH; i++) {
        bool is_right = is_predicted(&histories, i, (uint64_t)period[i % length]);

        ck_assert_msg(is_right || i < 2 * length, "%s: not the %zu-th", period, i);
    }
}
END_TEST

/* One rare shape among many of another: only the rare one is missed, in its second turn already. */
START_TEST(a_rare_shape_disturbs_no_other)
{
    static const size_t lengths[] = {3, 4, 10, 30, 40};
    size_t length = lengths[_i];
    struct histories histories = {0};

    for (size_t i = 0; i < 2 * length; i++) {
        uint64_t signature = i % length == length - 1 ? 'B' : 'A';
        bool is_right = is_predicted(&histories, i, signature);

        ck_assert_msg(is_right || signature == 'B' || i == 0, "period %zu: not the %zu-th", length,
                      i);
    }
}
END_TEST

/* Nothing can be known, and most are the usual one: it is not often taken for the other. */
START_TEST(at_random_the_usual_is_predicted_mostly)
{
    struct histories histories = {0};
    uint64_t state = 1;
    size_t wrong = 0;
    size_t rare = 0;

    for (size_t i = 0; i < 4000; i++) {
        bool is_rare = random_next(&state) % 10 == 0;

        rare += is_rare;
        wrong += !is_predicted(&histories, i, is_rare ? 'B' : 'A');
    }
    ck_assert_uint_gt(rare, 300);
    ck_assert_uint_lt(wrong, 2 * rare);
}
END_TEST

START_TEST(after_something_new_the_most_frequent)
{
    struct histories histories = {0};
    const struct history *history;
    uint64_t signature = 0;

    ck_assert_ptr_null(history_find(&histories, label));
    history_add(&histories, label, 1, 7);
    history = history_find(&histories, label);
    ck_assert_uint_eq(history_predict(history, &signature), 0);
    ck_assert_uint_eq(signature, 7);
    history_add(&histories, label, 2, 7);
    ck_assert_uint_eq(history_predict(history, &signature), 1);
    history_add(&histories, label, 3, 9);
    ck_assert_uint_eq(history_newest(history), 9);
    ck_assert_uint_eq(history_predict(history, &signature), 0);
    ck_assert_uint_eq(signature, 7);
    history_add(&histories, label, 4, 9); /* seen as often, and later */
    history_add(&histories, label, 5, 4);
    ck_assert_uint_eq(history_predict(history, &signature), 0);
    ck_assert_uint_eq(signature, 9);
}
END_TEST

START_TEST(the_label_least_recently_used_makes_way)
{
    static const char labels[HISTORY_LABELS + 1];
    struct histories histories = {0};

    for (uint64_t i = 0; i < HISTORY_LABELS; i++) {
        history_add(&histories, &labels[i], i + 1, i);
    }
    history_add(&histories, &labels[0], HISTORY_LABELS + 1, 0);
    history_add(&histories, &labels[HISTORY_LABELS], HISTORY_LABELS + 2, 50);
    ck_assert_ptr_null(history_find(&histories, &labels[1]));
    ck_assert_uint_eq(history_find(&histories, &labels[0])->count, 2);
    ck_assert_uint_eq(history_newest(history_find(&histories, &labels[2])), 2);
    ck_assert_uint_eq(history_newest(history_find(&histories, &labels[HISTORY_LABELS])), 50);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime history");
    TCase *tcase = tcase_create("history");

    tcase_add_loop_test(tcase, what_comes_in_turn_is_predicted, 0,
                        sizeof(periods) / sizeof(periods[0]));
    tcase_add_loop_test(tcase, a_rare_shape_disturbs_no_other, 0, 5);
    tcase_add_test(tcase, at_random_the_usual_is_predicted_mostly);
    tcase_add_test(tcase, after_something_new_the_most_frequent);
    tcase_add_test(tcase, the_label_least_recently_used_makes_way);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
