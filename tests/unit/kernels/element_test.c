/* element: every bf16 number survives widening, and rounding is to nearest, ties to even. */
#include "kernels/element.h"

#include "tests/support/suite.h"

#include <math.h>

START_TEST(every_number_survives_widening)
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

/* Between each two neighbours: just below the middle, the middle and just above it. */
START_TEST(rounding_is_to_nearest_even)
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

/* A NaN whose payload lies entirely in the discarded half must not become infinity. */
START_TEST(nan_stays_nan)
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

START_TEST(element_sizes_are_known)
{
    ck_assert_uint_eq(element_bytes(ELEMENT_FP32), 4);
    ck_assert_uint_eq(element_bytes(ELEMENT_BF16), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("element");
    TCase *tests = tcase_create("element");

    tcase_add_test(tests, every_number_survives_widening);
    tcase_add_test(tests, rounding_is_to_nearest_even);
    tcase_add_test(tests, nan_stays_nan);
    tcase_add_test(tests, element_sizes_are_known);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
