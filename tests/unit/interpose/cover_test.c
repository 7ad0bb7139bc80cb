/* Lists of intervals of covered memory. */
#include "interpose/slice/cover.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <string.h>

enum { BITS = 1000, GRANULE = 4, BASE = 1 << 20 };

START_TEST(intervals_that_touch_become_one)
{
    struct cover cover = {.count = 0};

    cover_add(&cover, 10, 20);
    cover_add(&cover, 20, 20);
    cover_add(&cover, 20, 25);
    cover_add(&cover, 30, 40);
    ck_assert_uint_eq(cover.count, 2);
    ck_assert_uint_eq(cover.intervals[0].first, 10);
    ck_assert_uint_eq(cover.intervals[0].end, 25);
    ck_assert_uint_eq(cover_end(&cover, 9), 9);
    ck_assert_uint_eq(cover_end(&cover, 10), 25);
    ck_assert_uint_eq(cover_end(&cover, 24), 25);
    ck_assert_uint_eq(cover_end(&cover, 25), 25);
    ck_assert_uint_eq(cover_end(&cover, 35), 40);
    ck_assert_uint_eq(cover_end(&cover, 40), 40);
}
END_TEST

/* Bits in runs of random lengths, added in two parts at a random place; every byte is covered or
   not as its bit says. */
START_TEST(bits_become_intervals)
{
    uint64_t random = 7;

    for (unsigned round = 0; round < 200; round++) {
        uint32_t words[BITS / 32 + 1] = {0};
        struct cover cover = {.count = 0};
        uint64_t parts = random_next(&random) % (BITS / 32) * 32;
        bool is_set = round % 2 == 0;

        for (uint64_t i = 0; i < BITS; is_set = !is_set) {
            uint64_t end = i + 20 + random_next(&random) % 80;

            for (; i < BITS && i < end; i++) {
                words[i / 32] |= (uint32_t)is_set << i % 32;
            }
        }
        cover_add_bits(&cover, words, parts, BASE, GRANULE);
        cover_add_bits(&cover, words + parts / 32, BITS - parts, BASE + parts * GRANULE, GRANULE);
        for (uint64_t i = 0; i < BITS; i++) {
            uint64_t at = BASE + i * GRANULE + round % GRANULE;

            ck_assert_int_eq(cover_end(&cover, at) > at, words[i / 32] >> i % 32 & 1);
        }
        for (size_t i = 1; i < cover.count; i++) {
            ck_assert_uint_lt(cover.intervals[i - 1].end, cover.intervals[i].first);
        }
    }
}
END_TEST

START_TEST(the_longest_intervals_are_kept)
{
    struct cover cover = {.count = 0};
    uint64_t at = 0;

    /* Interval i is i % 100 + 1 bytes long: twice each of 1 to 100. */
    for (uint64_t i = 0; i < 200; i++) {
        cover_add(&cover, at, at + i % 100 + 1);
        at += i % 100 + 2;
    }
    ck_assert_uint_eq(cover.count, COVER_MOST);
    for (size_t i = 0; i < cover.count; i++) {
        ck_assert_uint_gt(cover.intervals[i].end - cover.intervals[i].first, 100 - COVER_MOST / 2);
        ck_assert(i == 0 || cover.intervals[i - 1].end < cover.intervals[i].first);
    }
    /* The last one still grows. */
    cover_add(&cover, cover.intervals[COVER_MOST - 1].end, at + 5);
    ck_assert_uint_eq(cover.intervals[COVER_MOST - 1].end, at + 5);
}
END_TEST

/* A bit that does not count must not either beyond the end of the bitmap. */
START_TEST(bits_beyond_the_end_do_not_count)
{
    uint32_t words[2] = {UINT32_MAX, UINT32_MAX};
    struct cover cover = {.count = 0};

    cover_add_bits(&cover, words, 37, BASE, 16);
    ck_assert_uint_eq(cover.count, 1);
    ck_assert_uint_eq(cover_end(&cover, BASE), BASE + 37 * 16);
    cover_add_bits(&cover, words, 0, BASE + 40 * 16, 16);
    ck_assert_uint_eq(cover.count, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cover");
    TCase *cases = tcase_create("cover");

    tcase_add_test(cases, intervals_that_touch_become_one);
    tcase_add_test(cases, bits_become_intervals);
    tcase_add_test(cases, the_longest_intervals_are_kept);
    tcase_add_test(cases, bits_beyond_the_end_do_not_count);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
