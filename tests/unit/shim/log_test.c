/* What the library that stands in for the driver prints: whole lines, which no name can forge. */
#include "shim/driver/log.h"

#include "tests/support/suite.h"

#include <string.h>
#include <unistd.h>

static char printed[8192];

/* Prints a line, and leaves in `printed` what arrives on standard error. */
static void print(const char *name)
{
    int ends[2];
    int own = dup(STDERR_FILENO);
    ssize_t length;

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    log_line("kernel %s", name);
    ck_assert_int_ge(dup2(own, STDERR_FILENO), 0);
    close(ends[1]);
    length = read(ends[0], printed, sizeof(printed) - 1);
    ck_assert_int_ge((int)length, 0);
    printed[length] = '\0';
    close(ends[0]);
    close(own);
}

START_TEST(names_are_escaped)
{
    print("\x1b[2J\ncapuchin: forged\xff");
    ck_assert_str_eq(printed, "capuchin: kernel \\x1b[2J\\x0acapuchin: forged\\xff\n");
}
END_TEST

/* A line is cut where it is too long, also if escaping makes it longer. */
START_TEST(a_long_line_is_cut)
{
    char name[4000];

    memset(name, '\n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    print(name);
    ck_assert_uint_gt(strlen(printed), 2000);
    ck_assert_ptr_eq(strchr(printed, '\n'), printed + strlen(printed) - 1);
}
END_TEST

START_TEST(a_line_is_printed_once)
{
    print("once");
    ck_assert_str_eq(printed, "capuchin: kernel once\n");
    print("once");
    ck_assert_str_eq(printed, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interpose/log");
    TCase *tests = tcase_create("log");

    tcase_add_test(tests, names_are_escaped);
    tcase_add_test(tests, a_long_line_is_cut);
    tcase_add_test(tests, a_line_is_printed_once);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
