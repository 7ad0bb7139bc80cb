/* element: every bf16 number comes back, and rounding is to the nearest, of two to the even. */
#include "kernels/element.h"

#include "tests/support/suite.h"

#include <math.h>

START_TEST(widens_and_rounds_every_number)
{
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        float value = element_widen((uint16_t)bits);
        uint16_t back = element_round(value);

        if (isnan(value)) {
            ck_assert_float_nan(element_widen(back));
            ck_assert_int_eq(signbit(element_widen(back)) != 0, signbit(value) != 0);
        } else {
            ck_assert_uint_eq(back, bits);
        }
    }
}
END_TEST

/* Between each two neighbours: below the middle, the middle, above it. */
START_TEST(rounds_to_the_nearest)
{
    for (uint32_t bits = 0; bits < 0x7f80u; bits++) {
        uint32_t whole = bits << 16;
        static const uint32_t rests[] = {1, 0x7fff, 0x8000, 0x8001, 0xffff};
        uint32_t even = bits % 2 == 0 ? bits : bits + 1;
        const uint32_t expected[] = {bits, bits, even, bits + 1, bits + 1};

        for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
            uint32_t word = whole | rests[i];
            float value;

            memcpy(&value, &word, sizeof(value));
            ck_assert_uint_eq(element_round(value), expected[i]);
            ck_assert_uint_eq(element_round(-value), expected[i] | 0x8000u);
        }
    }
}
END_TEST

/* A NaN whose marks are all in the half that is cut off must not become infinite. */
START_TEST(keeps_what_is_no_number)
{
    uint32_t word = 0x7f800001u;
    float value;

    memcpy(&value, &word, sizeof(value));
    ck_assert_float_nan(element_widen(element_round(value)));
    ck_assert_float_infinite(element_widen(element_round(INFINITY)));
    ck_assert_float_infinite(element_widen(element_round(-INFINITY)));
    ck_assert_float_infinite(element_widen(element_round(3.4e38f)));
}
END_TEST

START_TEST(knows_sizes)
{
    ck_assert_uint_eq(element_bytes(ELEMENT_FP32), 4);
    ck_assert_uint_eq(element_bytes(ELEMENT_BF16), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("element");
    TCase *tests = tcase_create("element");

    tcase_add_test(tests, widens_and_rounds_every_number);
    tcase_add_test(tests, rounds_to_the_nearest);
    tcase_add_test(tests, keeps_what_is_no_number);
    tcase_add_test(tests, knows_sizes);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
