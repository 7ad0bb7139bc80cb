/* Parsing sizes as people write them, and structs from callers of other versions. */
#include "runtime/context/config.h"

#include "capuchin/context.h"
#include "tests/support/suite.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>

static const struct {
    const char *text;
    capu_status status;
    uint64_t bytes;
} sizes[] = {
    {"0", CAPU_OK, 0},
    {"1", CAPU_OK, 1},
    {"12B", CAPU_OK, 12},
    {"4GiB", CAPU_OK, UINT64_C(4) << 30},
    {"512MiB", CAPU_OK, 512 << 20},
    {"1.5GB", CAPU_OK, 1500000000},
    {"4e9", CAPU_OK, UINT64_C(4000000000)},
    {"1e3KiB", CAPU_OK, 1024000},
    {"2TiB", CAPU_OK, UINT64_C(2) << 40},
    {"0.5KiB", CAPU_OK, 512},
    {"8388607TiB", CAPU_OK, UINT64_C(8388607) << 40},
    {"8388608TiB", CAPU_TOO_LARGE, 7},
    {"1e400", CAPU_TOO_LARGE, 7},
    {"1.", CAPU_OK, 1},
    {"1E+3", CAPU_OK, 1000},
    {"1500e-3KB", CAPU_OK, 1500},
    {"0.4", CAPU_OK, 0},
    {"0.5", CAPU_OK, 1},
    {"1e-400", CAPU_OK, 0},
    {"0e400", CAPU_OK, 0},
    {"1e-99999999999999999999", CAPU_OK, 0},
    {"1e99999999999999999999", CAPU_TOO_LARGE, 7},
    {"0.000000000000000000000000001e27", CAPU_OK, 1},
    {"1000000000000000000000000000e-24", CAPU_OK, 1000},
    {"1.00000000000000000000000000001KiB", CAPU_OK, 1024},
    {"9007199254740992", CAPU_OK, UINT64_C(1) << 53},
    {"18446744073709551616", CAPU_TOO_LARGE, 7},
    {"", CAPU_INVALID, 7},
    {"1e", CAPU_INVALID, 7},
    {"1e+", CAPU_INVALID, 7},
    {"1,5GB", CAPU_INVALID, 7},
    {"1.5.5", CAPU_INVALID, 7},
    {".5", CAPU_INVALID, 7},
    {"-1", CAPU_INVALID, 7},
    {" 1", CAPU_INVALID, 7},
    {"1 GiB s", CAPU_INVALID, 7},
    {"1GiB ", CAPU_INVALID, 7},
    {"1 ", CAPU_OK, 1},
    {"4G", CAPU_OK, UINT64_C(4) << 30},
    {"4 GiB", CAPU_OK, UINT64_C(4) << 30},
    {"512m", CAPU_OK, 512 << 20},
    {"1.5k", CAPU_OK, 1536},
    {"2t", CAPU_OK, UINT64_C(2) << 40},
    {"3Mi", CAPU_OK, 3 << 20},
    {"1gib", CAPU_OK, 1 << 30},
    {"1gb", CAPU_OK, 1000000000},
    {"7b", CAPU_OK, 7},
    {"1e3 K", CAPU_OK, 1024000},
    {"1\nK", CAPU_INVALID, 7},
    {"1KG", CAPU_INVALID, 7},
    {"1i", CAPU_INVALID, 7},
    {"1iB", CAPU_INVALID, 7},
    {"1GiBB", CAPU_INVALID, 7},
    {"0x10", CAPU_INVALID, 7},
    {"inf", CAPU_INVALID, 7},
    {"nan", CAPU_INVALID, 7},
    {"GiB", CAPU_INVALID, 7},
    {"1GiBs", CAPU_INVALID, 7},
};

START_TEST(parses_sizes)
{
    uint64_t bytes = 7;

    ck_assert_int_eq(capu_parse_size(sizes[_i].text, &bytes), sizes[_i].status);
    ck_assert_uint_eq(bytes, sizes[_i].bytes);
}
END_TEST

/* A size means the same in a locale whose decimal point is a comma. */
START_TEST(does_not_follow_the_locale)
{
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8",  "de_DE",      "fr_FR.UTF-8",
                                         "fr_FR.utf8",  "nl_NL.UTF-8", "ru_RU.UTF-8"};
    const char *set = NULL;
    uint64_t bytes = 7;

    for (size_t i = 0; i < sizeof(commas) / sizeof(commas[0]) && set == NULL; i++) {
        set = setlocale(LC_NUMERIC, commas[i]);
    }
    if (set == NULL) {
        printf("no locale with a decimal comma is installed: not tested\n");
        return;
    }
    ck_assert_str_eq(localeconv()->decimal_point, ",");
    ck_assert_int_eq(capu_parse_size("1.5GB", &bytes), CAPU_OK);
    ck_assert_uint_eq(bytes, 1500000000);
    ck_assert_int_eq(capu_parse_size("1,5GB", &bytes), CAPU_INVALID);
    setlocale(LC_NUMERIC, "C");
}
END_TEST

START_TEST(checks_its_arguments)
{
    uint64_t bytes = 7;

    ck_assert_int_eq(capu_parse_size(NULL, &bytes), CAPU_INVALID);
    ck_assert_int_eq(capu_parse_size("1", NULL), CAPU_INVALID);
    ck_assert_uint_eq(bytes, 7);
}
END_TEST

struct versioned {
    size_t size;
    uint32_t first;
    uint32_t second;
};

START_TEST(structs_of_other_versions)
{
    struct versioned own;
    struct {
        struct versioned known;
        uint64_t more;
    } newer = {{sizeof(newer), 1, 2}, 0};
    struct versioned older = {offsetof(struct versioned, second), 3, 99};

    ck_assert(struct_read(&own, sizeof(own), &newer, newer.known.size));
    ck_assert(own.size == sizeof(own) && own.first == 1 && own.second == 2);
    newer.more = 1;
    ck_assert(!struct_read(&own, sizeof(own), &newer, newer.known.size));
    ck_assert(struct_read(&own, sizeof(own), &older, older.size));
    ck_assert(own.first == 3 && own.second == 0);
    ck_assert(!struct_read(&own, sizeof(own), &older, sizeof(size_t) - 1));

    own = (struct versioned){sizeof(own), 5, 6};
    newer.more = 9;
    ck_assert(struct_write(&newer, sizeof(newer), &own, sizeof(own)));
    ck_assert(newer.known.size == sizeof(newer) && newer.known.second == 6 && newer.more == 0);
    ck_assert(struct_write(&older, older.size, &own, sizeof(own)));
    ck_assert(older.first == 5 && older.second == 99);
    ck_assert(!struct_write(&older, 0, &own, sizeof(own)));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime size");
    TCase *tcase = tcase_create("size");

    tcase_add_loop_test(tcase, parses_sizes, 0, sizeof(sizes) / sizeof(sizes[0]));
    tcase_add_test(tcase, does_not_follow_the_locale);
    tcase_add_test(tcase, checks_its_arguments);
    tcase_add_test(tcase, structs_of_other_versions);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
