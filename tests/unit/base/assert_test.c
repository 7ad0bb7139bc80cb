/*
 * Assertions built at TESTED_LEVEL: assertions up to that level abort, those above it are not
 * evaluated.
 */
#undef CAPUCHIN_ASSERTION_LEVEL
#define CAPUCHIN_ASSERTION_LEVEL TESTED_LEVEL
#include "base/assert.h"

#include "tests/support/suite.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int evaluated;

/* Unused where no assertion of any level is compiled in. */
static __attribute__((unused)) bool evaluates_to(bool value)
{
    evaluated++;
    return value;
}

/* Asserts `value` with the macro of the given level. */
static void assert_at(int level, bool value)
{
    switch (level) {
    case 1:
        ASSERT(evaluates_to(value));
        break;
    case 2:
        ASSERT_INTERNAL(evaluates_to(value));
        break;
    default:
        ASSERT_EXPENSIVE(evaluates_to(value));
        break;
    }
}

START_TEST(true_conditions_pass)
{
    assert_at(_i, true);
    ck_assert_int_eq(evaluated, _i <= TESTED_LEVEL ? 1 : 0);
}
END_TEST

/* Runs a false assertion in a child process; returns its wait status and what it wrote to stderr.
 */
static int status_of_false(int level, char *text, size_t text_bytes)
{
    int ends[2];
    size_t count = 0;
    ssize_t got;
    int status;
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        assert_at(level, false);
        _exit(evaluated);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + count, text_bytes - 1 - count)) > 0) {
        count += (size_t)got;
    }
    text[count] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

START_TEST(false_conditions_abort)
{
    char text[512];
    int status = status_of_false(_i, text, sizeof(text));

    if (_i <= TESTED_LEVEL) {
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        ck_assert_ptr_nonnull(strstr(text, "assert_test.c:"));
        ck_assert_ptr_nonnull(strstr(text, ": assertion failed: evaluates_to(value)\n"));
    } else {
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        ck_assert_str_eq(text, "");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("assert");
    TCase *tcase = tcase_create("levels");

    tcase_add_loop_test(tcase, true_conditions_pass, 1, 4);
    tcase_add_loop_test(tcase, false_conditions_abort, 1, 4);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
