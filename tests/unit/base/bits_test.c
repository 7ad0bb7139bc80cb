/* Bit sets: next, previous and runs, compared with a plain array, at sizes of one to four levels.
 */
#include "base/bits.h"

#include "tests/support/malloc_faults.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"

static size_t next_in(const bool *model, size_t count, size_t from)
{
    for (size_t i = from; i < count; i++) {
        if (model[i]) {
            return i;
        }
    }
    return BITS_NONE;
}

static size_t previous_in(const bool *model, size_t count, size_t from)
{
    for (size_t i = from < count ? from + 1 : count; i > 0; i--) {
        if (model[i - 1]) {
            return i - 1;
        }
    }
    return BITS_NONE;
}

START_TEST(bits_match_the_model)
{
    static const size_t counts[] = {1, 63, 64, 65, 128, 4095, 4096, 4097, 9000};
    size_t count = counts[_i];
    uint64_t state = seed_start("bits");
    bool *model = calloc(count, sizeof(*model));
    struct bits bits;

    ck_assert(bits_init(&bits, count));
    ck_assert_uint_eq(bits_next(&bits, 0), BITS_NONE);
    ck_assert_uint_eq(bits_previous(&bits, SIZE_MAX), BITS_NONE);
    for (int step = 0; step < 2000; step++) {
        size_t at = seed_below(&state, count);
        size_t from = seed_below(&state, count + 2);
        size_t run = 0;

        /* Dense in the first half of the steps, then sparse. */
        if (seed_below(&state, 8) < (step < 1000 ? 6u : 2u)) {
            bits_add(&bits, at);
            model[at] = true;
        } else {
            bits_remove(&bits, at);
            model[at] = false;
        }
        while (at + run < count && model[at + run] && run < 100) {
            run++;
        }
        ck_assert_uint_eq(bits_run(&bits, at, 100), run);
        ck_assert(bits_has(&bits, at) == model[at]);
        ck_assert_uint_eq(bits_next(&bits, from), next_in(model, count, from));
        ck_assert_uint_eq(bits_previous(&bits, from), previous_in(model, count, from));
    }
    ck_assert(bits_validate(&bits));
    ck_assert(bits_grow(&bits, count * 3));
    ck_assert(bits_validate(&bits));
    for (size_t i = 0; i < count * 3; i++) {
        ck_assert(bits_has(&bits, i) == (i < count && model[i]));
    }
    bits_clear(&bits);
    ck_assert(bits_validate(&bits));
    ck_assert_uint_eq(bits_next(&bits, 0), BITS_NONE);
    bits_finish(&bits);
    free(model);
}
END_TEST

START_TEST(failed_allocations_change_nothing)
{
    struct bits bits;
    bool is_done;

    malloc_faults_arm(1, true);
    is_done = bits_init(&bits, 100);
    malloc_faults_arm(0, false);
    ck_assert(!is_done);
    ck_assert(!bits_init(&bits, 0));
    ck_assert(bits_init(&bits, 100));
    bits_add(&bits, 99);
    malloc_faults_arm(1, true);
    is_done = bits_grow(&bits, 200);
    malloc_faults_arm(0, false);
    ck_assert(!is_done);
    ck_assert_uint_eq(bits.count, 100);
    ck_assert_uint_eq(bits_next(&bits, 0), 99);
    bits_finish(&bits);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bits");
    TCase *tcase = tcase_create("bits");

    tcase_add_loop_test(tcase, bits_match_the_model, 0, 9);
    tcase_add_test(tcase, failed_allocations_change_nothing);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
