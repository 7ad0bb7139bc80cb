/* Fork marks in the process that made them, in its children, and where the kernel does not help. */
#define _GNU_SOURCE
#include "runtime/context/failure.h"

#include "tests/support/suite.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool child_says(pid_t child, const struct fork_mark *mark)
{
    int result = -1;

    if (child == 0) {
        _exit(fork_mark_is_in_child(mark) ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert(WIFEXITED(result));
    return WEXITSTATUS(result) == 1;
}

static void check(const struct fork_mark *mark)
{
    ck_assert(!fork_mark_is_in_child(mark));
    ck_assert(child_says(fork(), mark));
    /* Past the C library, where no fork handler would run. */
    ck_assert(child_says((pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0), mark));
    ck_assert(!fork_mark_is_in_child(mark));
}

START_TEST(children_are_told_apart)
{
    struct fork_mark mark;

    ck_assert_int_eq(fork_mark_init(&mark), CAPU_OK);
    check(&mark);
    fork_mark_finish(&mark);
    fork_mark_finish(&mark);
}
END_TEST

START_TEST(without_the_page_the_process_decides)
{
    struct fork_mark mark = {.process = getpid()};

    check(&mark);
    fork_mark_finish(&mark);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime fork_mark");
    TCase *tcase = tcase_create("fork_mark");

    tcase_add_test(tcase, children_are_told_apart);
    tcase_add_test(tcase, without_the_page_the_process_decides);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
