/* Interned names: one copy of each, made fit for files. */
#include "runtime/context/names.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

START_TEST(equal_texts_are_one_name)
{
    struct names names = {0};
    const char *kept[2000];
    char text[32];

    for (int i = 0; i < 2000; i++) {
        snprintf(text, sizeof(text), "tensor %d", i);
        kept[i] = names_intern(&names, text);
    }
    for (int i = 0; i < 2000; i++) {
        snprintf(text, sizeof(text), "tensor %d", i);
        ck_assert_ptr_eq(names_intern(&names, text), kept[i]);
        ck_assert_str_eq(kept[i], text);
    }
    ck_assert_uint_eq(names.table.count, 2000);
    ck_assert_str_eq(names_intern(&names, NULL), "");
    names_finish(&names);
    names_finish(&names);
}
END_TEST

/* Interning an interned name returns the same name, also for the empty one. */
START_TEST(null_is_the_empty_name)
{
    struct names names = {0};
    const char *name = names_intern(&names, NULL);

    ck_assert_str_eq(name, "");
    ck_assert_ptr_eq(names_intern(&names, name), name);
    ck_assert_ptr_eq(names_intern(&names, ""), name);
    names_finish(&names);
}
END_TEST

/* The cache recognizes a text by its address, but must notice that the address holds another one.
 */
START_TEST(a_text_may_change_at_its_address)
{
    static const char *const texts[] = {"forward", "forward", "forwarn", "forward 2",
                                        "f",       "a\xff",   ""};
    struct names names = {0};
    char text[32];

    for (size_t i = 0; i < 3 * sizeof(texts) / sizeof(texts[0]); i++) {
        const char *wanted = texts[i % (sizeof(texts) / sizeof(texts[0]))];
        const char *name;

        strcpy(text, wanted);
        name = names_intern(&names, text);
        ck_assert_ptr_eq(names_intern(&names, text), name);
        ck_assert_ptr_eq(names_intern(&names, wanted), name);
        ck_assert_str_eq(name, strcmp(wanted, "a\xff") == 0 ? "a?" : wanted);
        ck_assert_ptr_ne(name, text);
    }
    ck_assert_uint_eq(names.table.count, 5);
    names_finish(&names);
}
END_TEST

static const struct {
    const char *text;
    const char *name;
} cases[] = {
    {"\xc3\xa4", "\xc3\xa4"},                 /* two bytes */
    {"\xe2\x82\xac", "\xe2\x82\xac"},         /* three */
    {"\xf0\x9f\x90\x92", "\xf0\x9f\x90\x92"}, /* four */
    {"a\xff z", "a? z"},                      /* no lead byte */
    {"\xc0\xaf", "??"},                       /* overlong */
    {"\xe0\x80\xaf", "???"},
    {"\xed\xa0\x80", "???"},      /* a surrogate */
    {"\xf4\x90\x80\x80", "????"}, /* above the last code point */
    {"cut \xe2\x82", "cut ??"},   /* ends inside a sequence */
    {"\x80", "?"},
};

START_TEST(invalid_utf8_is_replaced)
{
    struct names names = {0};

    ck_assert_str_eq(names_intern(&names, cases[_i].text), cases[_i].name);
    names_finish(&names);
}
END_TEST

START_TEST(long_names_are_cut_between_characters)
{
    struct names names = {0};
    char text[5001];
    const char *name;

    memset(text, 'x', 5000);
    text[5000] = '\0';
    ck_assert_uint_eq(strlen(names_intern(&names, text)), 4096);
    memcpy(text + 4095, "\xc3\xa4", 2);
    name = names_intern(&names, text);
    ck_assert_uint_eq(strlen(name), 4095);
    names_finish(&names);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime names");
    TCase *tcase = tcase_create("names");

    tcase_add_test(tcase, equal_texts_are_one_name);
    tcase_add_test(tcase, null_is_the_empty_name);
    tcase_add_test(tcase, a_text_may_change_at_its_address);
    tcase_add_loop_test(tcase, invalid_utf8_is_replaced, 0, sizeof(cases) / sizeof(cases[0]));
    tcase_add_test(tcase, long_names_are_cut_between_characters);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
