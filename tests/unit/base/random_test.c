/* Random numbers: the first numbers of each sequence, which must never change. */
#include "base/random.h"

#include "tests/support/suite.h"

START_TEST(splitmix_gives_known_numbers)
{
    static const uint64_t expected[] = {0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u,
                                        0x06c45d188009454fu, 0xf88bb8a8724c81ecu};
    uint64_t state = 0;

    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(random_next(&state), expected[i]);
    }
}
END_TEST

START_TEST(xorshift_gives_known_numbers)
{
    static const uint64_t expected[] = {0x47e4ce4b896cdd1du, 0xabcfa6a8e079651du,
                                        0xb9d10d8feb731f57u, 0x4db418a0bb1b019du};
    uint64_t state = 1;

    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(random_xorshift(&state), expected[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random");
    TCase *tcase = tcase_create("random");

    tcase_add_test(tcase, splitmix_gives_known_numbers);
    tcase_add_test(tcase, xorshift_gives_known_numbers);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
