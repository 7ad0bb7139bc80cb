/* Fault traps: which faults are handled, what happens to the others, and what is left behind. */
#define _GNU_SOURCE
#include "device/fault_trap.h"

#include "tests/support/suite.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_bytes;

static char *map(int access)
{
    char *address;

    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    address = mmap(NULL, page_bytes, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(address != MAP_FAILED);
    return address;
}

static bool allow(void *owner, void *address)
{
    int *calls = owner;

    (*calls)++;
    return mprotect((void *)((uintptr_t)address & ~(page_bytes - 1)), page_bytes,
                    PROT_READ | PROT_WRITE) == 0;
}

static bool decline(void *owner, void *address)
{
    int *calls = owner;

    (void)address;
    (*calls)++;
    return false;
}

static void touch(char *address)
{
    *(volatile char *)address = 1;
}

static sigjmp_buf before_fault;
static volatile int earlier_calls;

static void earlier(int number)
{
    (void)number;
    earlier_calls++;
    siglongjmp(before_fault, 1);
}

static void *earlier_address;

static void earlier_with_information(int number, siginfo_t *information, void *machine)
{
    (void)number;
    (void)machine;
    earlier_address = information->si_addr;
    siglongjmp(before_fault, 1);
}

static void set(char *address, fault_trap_handler *handler, int *calls, struct fault_trap **trap)
{
    ck_assert_int_eq(fault_trap_set(address, page_bytes, handler, calls, trap), CAPU_OK);
}

START_TEST(a_fault_in_the_range_is_handled)
{
    char *address = map(PROT_NONE);
    struct fault_trap *trap;
    int calls = 0;

    set(address, allow, &calls, &trap);
    touch(address + 100);
    ck_assert_int_eq(calls, 1);
    ck_assert_int_eq(address[100], 1);
    fault_trap_remove(trap);
    munmap(address, page_bytes);
}
END_TEST

/* Faults that no trap takes reach the handler that was there before, with the same information. */
START_TEST(other_faults_reach_the_earlier_handler)
{
    struct sigaction action = {.sa_handler = earlier};
    char *address = map(PROT_NONE);
    char *other = map(PROT_READ);
    struct fault_trap *trap;
    int calls = 0;

    ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
    set(address, decline, &calls, &trap);
    if (sigsetjmp(before_fault, 1) == 0) {
        touch(other);
    }
    ck_assert_int_eq(calls, 0);
    if (sigsetjmp(before_fault, 1) == 0) {
        touch(address);
    }
    ck_assert_int_eq(calls, 1);
    ck_assert_int_eq(earlier_calls, 2);
    fault_trap_remove(trap);
    action = (struct sigaction){.sa_sigaction = earlier_with_information, .sa_flags = SA_SIGINFO};
    ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
    set(address, decline, &calls, &trap);
    if (sigsetjmp(before_fault, 1) == 0) {
        touch(address + 7);
    }
    ck_assert_ptr_eq(earlier_address, address + 7);
    fault_trap_remove(trap);
    munmap(address, page_bytes);
    munmap(other, page_bytes);
}
END_TEST

START_TEST(without_an_earlier_handler_the_process_ends)
{
    struct fault_trap *trap;
    int calls = 0;
    char *address;

    signal(SIGSEGV, SIG_DFL); /* sanitizers install handlers */
    address = map(PROT_NONE);
    set(address, decline, &calls, &trap);
    touch(address);
}
END_TEST

START_TEST(a_signal_that_is_sent_ends_the_process)
{
    struct fault_trap *trap;
    int calls = 0;

    signal(SIGSEGV, SIG_DFL);
    set(map(PROT_NONE), allow, &calls, &trap);
    raise(SIGSEGV);
}
END_TEST

/* The handler is there from the first trap to the last one, and what was there before comes back.
 */
START_TEST(the_handler_is_restored)
{
    struct sigaction action = {.sa_handler = earlier};
    struct sigaction now;
    char *address = map(PROT_NONE);
    char *other = map(PROT_NONE);
    struct fault_trap *traps[2];
    int calls = 0;

    ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
    set(address, allow, &calls, &traps[0]);
    set(other, allow, &calls, &traps[1]);
    fault_trap_remove(traps[0]);
    touch(other);
    ck_assert_int_eq(calls, 1);
    fault_trap_remove(traps[1]);
    ck_assert_int_eq(sigaction(SIGSEGV, NULL, &now), 0);
    ck_assert(now.sa_handler == earlier);
    fault_trap_remove(NULL);
    munmap(address, page_bytes);
    munmap(other, page_bytes);
}
END_TEST

static struct sigaction below;

/* As a library does that installs its handler later and passes on what it does not want. */
static void later(int number, siginfo_t *information, void *machine)
{
    below.sa_sigaction(number, information, machine);
}

/* A handler that was installed over ours stays, and new traps work through it. */
START_TEST(a_later_handler_stays)
{
    struct sigaction action = {.sa_sigaction = later, .sa_flags = SA_SIGINFO};
    struct sigaction now;
    char *address = map(PROT_NONE);
    struct fault_trap *trap;
    int calls = 0;

    signal(SIGSEGV, SIG_DFL);
    set(address, allow, &calls, &trap);
    ck_assert_int_eq(sigaction(SIGSEGV, &action, &below), 0);
    fault_trap_remove(trap);
    ck_assert_int_eq(sigaction(SIGSEGV, NULL, &now), 0);
    ck_assert(now.sa_sigaction == later);
    set(address, allow, &calls, &trap);
    touch(address);
    ck_assert_int_eq(calls, 1);
    fault_trap_remove(trap);
    munmap(address, page_bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault trap");
    TCase *cases = tcase_create("faults");

    tcase_add_test(cases, a_fault_in_the_range_is_handled);
    tcase_add_test(cases, other_faults_reach_the_earlier_handler);
    tcase_add_test_raise_signal(cases, without_an_earlier_handler_the_process_ends, SIGSEGV);
    tcase_add_test_raise_signal(cases, a_signal_that_is_sent_ends_the_process, SIGSEGV);
    tcase_add_test(cases, the_handler_is_restored);
    tcase_add_test(cases, a_later_handler_stays);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
