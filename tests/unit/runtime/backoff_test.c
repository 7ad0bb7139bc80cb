/* Pauses of guided mode: when they begin, how long they are, and what ends them. */
#include "runtime/plan/label_records.h"

#include "tests/support/suite.h"

/* Iterations that diverge until the label pauses, and how many they were. */
static unsigned diverge(struct backoff *backoff)
{
    unsigned count = 0;

    while (!backoff_is_paused(backoff)) {
        backoff_note(backoff, true, true);
        count++;
    }
    return count;
}

/* The iterations of a pause, and how many they were. */
static uint64_t wait(struct backoff *backoff)
{
    uint64_t count = 0;

    while (backoff_is_paused(backoff)) {
        backoff_note(backoff, false, false);
        count++;
    }
    return count;
}

START_TEST(pauses_become_longer)
{
    struct backoff backoff = {0};

    ck_assert_uint_eq(diverge(&backoff), 8);
    ck_assert_uint_eq(backoff.left, 64);
    ck_assert_uint_eq(wait(&backoff), 64);
    for (uint64_t pause = 128; pause <= 1024; pause *= 2) {
        ck_assert_uint_eq(diverge(&backoff), 1);
        ck_assert_uint_eq(wait(&backoff), pause);
    }
    /* A pause of half of all numbers is long enough. */
    backoff.pause = UINT64_MAX / 2;
    ck_assert_uint_eq(diverge(&backoff), 1);
    ck_assert_uint_eq(backoff.left, UINT64_MAX / 2);
}
END_TEST

START_TEST(one_iteration_that_follows_its_plan_ends_all)
{
    struct backoff backoff = {0};

    for (int i = 0; i < 7; i++) {
        backoff_note(&backoff, true, true);
    }
    backoff_note(&backoff, true, false);
    ck_assert_uint_eq(diverge(&backoff), 8);
    wait(&backoff);
    ck_assert_uint_eq(diverge(&backoff), 1);
    wait(&backoff);
    backoff_note(&backoff, true, false);
    ck_assert_uint_eq(diverge(&backoff), 8);
    ck_assert_uint_eq(wait(&backoff), 64);
}
END_TEST

START_TEST(iterations_without_a_plan_count_neither_way)
{
    struct backoff backoff = {0};

    for (int i = 0; i < 7; i++) {
        backoff_note(&backoff, true, true);
        backoff_note(&backoff, false, false);
    }
    ck_assert(!backoff_is_paused(&backoff));
    backoff_note(&backoff, true, true);
    ck_assert(backoff_is_paused(&backoff));
    wait(&backoff);
    backoff_note(&backoff, false, false);
    ck_assert(!backoff_is_paused(&backoff));
    ck_assert_uint_eq(diverge(&backoff), 1);
    ck_assert_uint_eq(wait(&backoff), 128);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime backoff");
    TCase *tcase = tcase_create("backoff");

    tcase_add_test(tcase, pauses_become_longer);
    tcase_add_test(tcase, one_iteration_that_follows_its_plan_ends_all);
    tcase_add_test(tcase, iterations_without_a_plan_count_neither_way);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
