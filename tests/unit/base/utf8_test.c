/* Reading UTF-8: the first and last character of each length, and what is not valid. */
#include "base/utf8.h"

#include "tests/support/suite.h"

#include <string.h>

START_TEST(characters_are_read)
{
    static const struct {
        const char *text;
        uint32_t code;
    } characters[] = {
        {"", 0},
        {"a", 'a'},
        {"\x7f", 0x7f},
        {"\xc2\x80", 0x80},
        {"\xdf\xbf", 0x7ff},
        {"\xe0\xa0\x80", 0x800},
        {"\xed\x9f\xbf", 0xd7ff},
        {"\xee\x80\x80", 0xe000},
        {"\xef\xbf\xbf", 0xffff},
        {"\xf0\x90\x80\x80", 0x10000},
        {"\xf4\x8f\xbf\xbf", 0x10ffff},
    };

    for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]); i++) {
        size_t length = strlen(characters[i].text);
        uint32_t code = UINT32_MAX;

        ck_assert_uint_eq(utf8_read(characters[i].text, &code), length > 0 ? length : 1);
        ck_assert_uint_eq(code, characters[i].code);
    }
}
END_TEST

START_TEST(what_is_not_valid_is_rejected)
{
    static const char *const wrong[] = {
        "\x80",         "\xbf",         "\xc0\x80",         "\xc1\xbf",         "\xc2",
        "\xc2x",        "\xe0\x9f\xbf", "\xed\xa0\x80",     "\xed\xbf\xbf",     "\xe2\x82",
        "\xe2\x82\xff", "\xf0\x90\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xff",
    };
    uint32_t code = 7;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_msg(utf8_read(wrong[i], &code) == 0, "case %zu", i);
    }
    ck_assert_uint_eq(code, 7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base utf8");
    TCase *cases = tcase_create("utf8");

    tcase_add_test(cases, characters_are_read);
    tcase_add_test(cases, what_is_not_valid_is_rejected);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
