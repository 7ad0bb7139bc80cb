/* Numbers for allocations: always the lowest that is free. */
#include "interpose/period/period.h"

#include "tests/support/suite.h"

#include <stdlib.h>

enum { NUMBERS = 1000 };

static uint64_t take(struct ordinals *ordinals)
{
    uint64_t number = UINT64_MAX;

    ck_assert(ordinals_take(ordinals, &number));
    return number;
}

/* Random numbers are given back and taken again; a plain list says which is the lowest. */
START_TEST(the_lowest_free_number_is_taken)
{
    static bool is_taken[NUMBERS + 1];
    struct ordinals ordinals = {0};
    uint64_t random = 7;

    for (uint64_t i = 0; i < NUMBERS; i++) {
        ck_assert_uint_eq(take(&ordinals), i);
        is_taken[i] = true;
    }
    for (int round = 0; round < 20000; round++) {
        uint64_t lowest = 0;
        uint64_t number;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        number = (random >> 33) % NUMBERS;
        if (is_taken[number]) {
            ordinals_give(&ordinals, number);
            is_taken[number] = false;
            continue;
        }
        while (is_taken[lowest]) {
            lowest++;
        }
        ck_assert_uint_eq(take(&ordinals), lowest);
        is_taken[lowest] = true;
    }
    ordinals_finish(&ordinals);
}
END_TEST

/* Steps that allocate and free the same number of times get the same numbers, in whatever order
   they free. */
START_TEST(steps_get_the_same_numbers)
{
    struct ordinals ordinals = {0};
    uint64_t first[100];

    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < 100; i++) {
            uint64_t number = take(&ordinals);

            first[i] = step == 0 ? number : first[i];
            ck_assert_uint_eq(number, first[i]);
            if (i % 3 == 2) {
                ordinals_give(&ordinals, first[i - 1]);
            }
        }
        for (int i = 0; i < 100; i++) {
            int k = step % 2 == 0 ? i : 99 - i;

            if (k % 3 != 1 || k == 99) {
                ordinals_give(&ordinals, first[k]);
            }
        }
    }
    ordinals_finish(&ordinals);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ordinals");
    TCase *cases = tcase_create("ordinals");

    tcase_add_test(cases, the_lowest_free_number_is_taken);
    tcase_add_test(cases, steps_get_the_same_numbers);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
