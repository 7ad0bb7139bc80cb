/* The signals that a thread of the library blocks, and those that it does not. */
#define _GNU_SOURCE
#include "base/thread.h"

#include "tests/support/suite.h"

#include <signal.h>

static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};

static bool is_fault(int number)
{
    for (size_t i = 0; i < sizeof(fault_signals) / sizeof(fault_signals[0]); i++) {
        if (number == fault_signals[i]) {
            return true;
        }
    }
    return false;
}

static void *read_mask(void *mask)
{
    pthread_sigmask(SIG_SETMASK, NULL, mask);
    return mask;
}

/* The mask of a thread that this one starts. */
static sigset_t mask_of_thread(void)
{
    sigset_t mask;
    pthread_t thread;

    ck_assert(thread_start(&thread, read_mask, &mask));
    pthread_join(thread, NULL);
    return mask;
}

START_TEST(a_thread_blocks_all_but_faults)
{
    sigset_t mask = mask_of_thread();
    sigset_t own;

    for (int number = 1; number <= SIGRTMAX; number++) {
        if (number == SIGKILL || number == SIGSTOP || (number > 31 && number < SIGRTMIN)) {
            continue;
        }
        ck_assert_msg(sigismember(&mask, number) == !is_fault(number), "signal %d", number);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &own);
    ck_assert_int_eq(sigisemptyset(&own), 1);
}
END_TEST

START_TEST(what_the_program_blocks_stays_blocked)
{
    sigset_t blocked;
    sigset_t mask;
    sigset_t own;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTRAP);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    mask = mask_of_thread();
    ck_assert_int_eq(sigismember(&mask, SIGTRAP), 1);
    ck_assert_int_eq(sigismember(&mask, SIGSEGV), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &own);
    for (int number = 1; number <= SIGRTMAX; number++) {
        ck_assert_msg(sigismember(&own, number) == sigismember(&blocked, number), "signal %d",
                      number);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base thread");
    TCase *tcase = tcase_create("thread");

    tcase_add_test(tcase, a_thread_blocks_all_but_faults);
    tcase_add_test(tcase, what_the_program_blocks_stays_blocked);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
