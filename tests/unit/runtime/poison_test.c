/* Poison: unchanged words, results of arithmetic, and what must not be taken for either. */
#include "runtime/strict/poison.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 1024 };

static uint64_t memory[WORDS / 2]; /* aligned as device memory is */

static struct poison_found unchanged(const struct poison *poison, size_t first, size_t bytes)
{
    const char *start = (const char *)memory + first;
    const struct poison_range range = {start, bytes};
    struct poison_found found = {0};

    /* In two stretches, as where a tensor's pages are not consecutive. */
    poison_find_unchanged(poison, &range, start, start, bytes / 8 * 4, &found);
    poison_find_unchanged(poison, &range, start + bytes / 8 * 4, start + bytes / 8 * 4,
                          bytes - bytes / 8 * 4, &found);
    return found;
}

static bool shows_result(const struct poison *poison, bool own)
{
    struct poison_found found = {0};

    poison_find_results(poison, own, memory, memory, sizeof(memory), &found);
    return poison_is_result(&found);
}

START_TEST(is_nan_in_its_formats)
{
    for (uint64_t number = 0; number < 10000000; number += 99991) {
        const struct poison poison = poison_of(number);
        float floats[2];
        double value;

        memcpy(floats, &poison, sizeof(floats));
        memcpy(&value, &poison, sizeof(value));
        ck_assert(isnan(floats[0]) && isnan(floats[1]) && isnan(value));
        for (size_t i = 0; i < 2; i++) {
            uint32_t as_bfloat16 = poison.words[i] & 0xffff0000u;

            memcpy(floats, &as_bfloat16, sizeof(as_bfloat16));
            ck_assert(isnan(floats[0]));
        }
        ck_assert(poison.words[0] != UINT32_MAX && poison.words[1] != UINT32_MAX);
    }
}
END_TEST

/* Any run of words, wherever it begins; one word alone only at an edge. */
START_TEST(unchanged_words_are_found)
{
    const struct poison poison = poison_of(5);

    for (size_t first = 0; first < 12; first++) {
        size_t bytes = sizeof(memory) - 16 - first;

        for (size_t at = first; at < first + 40; at++) {
            for (size_t run = 0; run < 20; run++) {
                struct poison_found found;
                size_t word = (at + 3) / 4 * 4;
                size_t words = at + run < word ? 0 : (at + run - word) / 4;

                memset(memory, 0x55, sizeof(memory));
                poison_fill(&poison, (char *)memory + at, (char *)memory + at, run);
                found = unchanged(&poison, first, bytes);
                ck_assert_uint_eq(found.words, words);
                ck_assert(words == 0 || found.at == (char *)memory + word);
                ck_assert_int_eq(poison_is_unchanged(&found),
                                 words >= 2 || (words == 1 && word == (first + 3) / 4 * 4));
            }
        }
    }
    memset(memory, 0, sizeof(memory));
    poison_fill(&poison, (char *)memory + sizeof(memory) - 4, (char *)memory + sizeof(memory) - 4,
                4);
    ck_assert(poison_is_unchanged(&(struct poison_found){.words = 2}));
    ck_assert(unchanged(&poison, 0, sizeof(memory)).is_at_edge);
}
END_TEST

static void fill(const struct poison *poison)
{
    poison_fill(poison, memory, memory, sizeof(memory));
}

/* What arithmetic makes of poison, in floats and doubles. */
START_TEST(results_are_found)
{
    const struct poison poison = poison_of((uint64_t)_i * 1000003);
    const struct poison other = poison_of((uint64_t)_i * 1000003 + 1);
    volatile float *floats = (volatile float *)memory;
    volatile double *doubles = (volatile double *)memory;
    float sum = 1.0f;

    fill(&poison);
    ck_assert(!shows_result(&poison, true));
    ck_assert(shows_result(&poison, false)); /* copied to another tensor */
    floats[8] += 1.0f;
    ck_assert(!shows_result(&poison, true)); /* one in many words can be an accident */
    floats[10] += 1.0f;
    ck_assert(shows_result(&poison, true));
    ck_assert(!shows_result(&other, true));

    fill(&poison);
    doubles[3] = -0.5 * doubles[3];
    doubles[5] = -0.5 * doubles[5];
    ck_assert(shows_result(&poison, true));

    fill(&poison);
    sum += floats[1] * 3.0f;
    memset(memory, 0, sizeof(memory));
    floats[100] = floats[200] = sum;
    ck_assert(shows_result(&poison, true) && shows_result(&poison, false));
}
END_TEST

/* How many words are needed grows with the words among which they are found. */
START_TEST(accidents_are_not_results)
{
    static const struct {
        uint64_t scanned;
        uint64_t words;
    } least[] = {{1, 1}, {16, 1}, {17, 2}, {65536, 2}, {65537, 4}, {UINT64_MAX, 4}};

    for (size_t i = 0; i < sizeof(least) / sizeof(least[0]); i++) {
        struct poison_found found = {.words = least[i].words, .scanned = least[i].scanned};

        ck_assert(poison_is_result(&found));
        found.words--;
        ck_assert(!poison_is_result(&found));
    }
}
END_TEST

/* NaN of other origins, -1, random bits and the poison of other ops are none of it. */
START_TEST(other_words_are_not_taken_for_poison)
{
    const struct poison poison = poison_of(77);
    static const uint32_t values[] = {0x7fc00000, 0xffc00000, 0xffffffff, 0x7f800000,
                                      0xff800000, 0x7fffffff, 0x7fa00000, 0};
    uint64_t seed = 1;

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        for (size_t word = 0; word < WORDS; word++) {
            ((uint32_t *)memory)[word] = values[i];
        }
        ck_assert_uint_eq(unchanged(&poison, 0, sizeof(memory)).words, 0);
        ck_assert(!shows_result(&poison, true) && !shows_result(&poison, false));
    }
    for (uint64_t number = 78; number < 3000; number++) {
        const struct poison other = poison_of(number);

        fill(&other);
        ck_assert_uint_eq(unchanged(&poison, 0, sizeof(memory)).words, 0);
        ck_assert(!shows_result(&poison, false));
    }
    for (size_t round = 0; round < 100; round++) {
        for (size_t i = 0; i < WORDS / 2; i++) {
            memory[i] = random_next(&seed);
        }
        ck_assert(!shows_result(&poison, true) && !shows_result(&poison, false));
        ck_assert_uint_eq(unchanged(&poison, 0, sizeof(memory)).words, 0);
    }
}
END_TEST

/* A word leads back to its number among many, also after arithmetic. */
START_TEST(numbers_are_found_again)
{
    static const uint64_t numbers[] = {0, 100, 458751, 458752 + 50, 10000000};
    uint64_t index;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        uint64_t highest = numbers[i] + 99;

        for (uint64_t below = 0; below < 100; below++) {
            const struct poison poison = poison_of(highest - below);

            ck_assert(poison_is_from(poison.words[0], highest, 100, &index) && index == below);
            ck_assert(poison_is_from(poison.words[1], highest, 100, &index) && index == below);
            ck_assert(poison_is_from(poison.words[0] ^ 0x80400000u, highest, 100, &index) &&
                      index == below);
            ck_assert(poison_is_from(poison.words[1] ^ 0x80080000u, highest, 100, &index) &&
                      index == below);
            ck_assert(!poison_is_from(poison.words[0], highest + 100, 100, &index));
            ck_assert(!poison_is_from(poison.words[1], highest + 100, 100, &index));
        }
        ck_assert(!poison_is_from(0x7fc00000u, highest, 100, &index));
        ck_assert(!poison_is_from(0x3f800000u, highest, 100, &index));
    }
}
END_TEST

/* Every byte differs, and none of what it fills is NaN, whatever is taken for a number there. */
START_TEST(the_other_pattern_is_a_number)
{
    for (uint64_t number = 0; number < 100000; number++) {
        const struct poison poison = poison_of(number);
        const struct poison other = poison_other(&poison);
        float floats[2];
        double whole;

        memcpy(floats, other.words, sizeof(floats));
        memcpy(&whole, other.words, sizeof(whole));
        ck_assert(isfinite(floats[0]) && isfinite(floats[1]) && isfinite(whole));
        ck_assert(fabsf(floats[0]) > 1e9f && fabsf(floats[1]) > 1e9f && fabs(whole) > 1e9);
        for (uintptr_t i = 0; i < sizeof(other.words); i++) {
            ck_assert_uint_ne(poison_byte(&poison, (const void *)i),
                              poison_byte(&other, (const void *)i));
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("poison");
    TCase *cases = tcase_create("poison");

    tcase_add_test(cases, is_nan_in_its_formats);
    tcase_add_test(cases, unchanged_words_are_found);
    tcase_add_loop_test(cases, results_are_found, 0, 8);
    tcase_add_test(cases, accidents_are_not_results);
    tcase_add_test(cases, other_words_are_not_taken_for_poison);
    tcase_add_test(cases, numbers_are_found_again);
    tcase_add_test(cases, the_other_pattern_is_a_number);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
