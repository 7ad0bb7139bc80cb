/* Sizes in messages. */
#include "base/size_text.h"

#include "tests/support/suite.h"

START_TEST(sizes_are_in_mebibytes_and_bytes)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 bytes"},
                 {1048575, "1048575 bytes"},
                 {1048576, "1.00 MiB (1048576 bytes)"},
                 {1048577, "1.01 MiB (1048577 bytes)"},
                 {1572864, "1.50 MiB (1572864 bytes)"},
                 {2097151, "2.00 MiB (2097151 bytes)"},
                 {19818086, "18.90 MiB (19818086 bytes)"},
                 {UINT64_MAX, "17592186044416.00 MiB (18446744073709551615 bytes)"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_str_eq(size_text(cases[i].bytes).text, cases[i].text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base size_text");
    TCase *tcase = tcase_create("size_text");

    tcase_add_test(tcase, sizes_are_in_mebibytes_and_bytes);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
