/* When a better plan is worth a change: never too early, never too late, and never at more than
   twice the cost of the best decision in hindsight. */
#include "runtime/guide/plan_entry.h"

#include "base/random.h"
#include "tests/support/effort.h"
#include "tests/support/suite.h"

/* In which of the next iterations the change is due, from 1; 0: in none of so many. */
static uint64_t due_after(struct improvement *improvement, uint64_t change_ns, uint64_t iterations)
{
    for (uint64_t i = 1; i <= iterations; i++) {
        if (improvement_is_due(improvement, change_ns)) {
            return i;
        }
    }
    return 0;
}

START_TEST(a_change_is_due_when_as_much_has_been_lost)
{
    static const struct {
        uint64_t gain_ns;
        uint64_t change_ns;
        uint64_t due;
    } cases[] = {{1, 0, 1},       {10, 10, 1}, {10, 11, 2},         {3, 100, 34},
                 {1, 1000, 1000}, {1, 101, 0}, {UINT64_MAX, 50, 1}, {1, 100, 100}};
    enum { CASES = sizeof(cases) / sizeof(cases[0]) };

    for (size_t i = 0; i < CASES; i++) {
        struct improvement improvement = {.gain_ns = cases[i].gain_ns};
        uint64_t limit = cases[i].due != 0 ? cases[i].due : 100;

        ck_assert_uint_eq(due_after(&improvement, cases[i].change_ns, limit), cases[i].due);
    }
}
END_TEST

/* A better plan that replaces another one takes over what has been lost without that. */
START_TEST(what_was_forgone_counts_on)
{
    struct improvement improvement = {.gain_ns = 10};

    ck_assert_uint_eq(due_after(&improvement, 100, 5), 0);
    improvement.gain_ns = 25;
    ck_assert_uint_eq(due_after(&improvement, 100, 5), 2);
    improvement = (struct improvement){.gain_ns = UINT64_MAX - 5, .forgone_ns = 6};
    ck_assert(improvement_is_due(&improvement, UINT64_MAX));
}
END_TEST

/* However many iterations follow: their time lost and the change together are at most twice what
   the best of both, to change at once or not at all, would have lost. */
START_TEST(nothing_loses_more_than_twice_the_least)
{
    uint64_t state = 17;

    for (uint64_t round = 0; round < effort_share(20000); round++) {
        struct improvement improvement = {.gain_ns = 1 + random_next(&state) % 1000};
        uint64_t change_ns = random_next(&state) % 10000;
        uint64_t iterations = 1 + random_next(&state) % 100;
        uint64_t due = due_after(&improvement, change_ns, iterations);
        uint64_t without = due != 0 ? due - 1 : iterations;
        uint64_t lost_ns = without * improvement.gain_ns + (due != 0 ? change_ns : 0);
        uint64_t never_ns = iterations * improvement.gain_ns;
        uint64_t least_ns = never_ns < change_ns ? never_ns : change_ns;

        ck_assert_msg(lost_ns <= 2 * least_ns,
                      "gain %ju, change %ju, %ju iterations: %ju lost instead of %ju",
                      (uintmax_t)improvement.gain_ns, (uintmax_t)change_ns, (uintmax_t)iterations,
                      (uintmax_t)lost_ns, (uintmax_t)least_ns);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime improvement");
    TCase *tcase = tcase_create("improvement");

    tcase_add_test(tcase, a_change_is_due_when_as_much_has_been_lost);
    tcase_add_test(tcase, what_was_forgone_counts_on);
    tcase_add_test(tcase, nothing_loses_more_than_twice_the_least);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
