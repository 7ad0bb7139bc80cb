/*
 * The library in a process with signals and pipes of its own. Check runs each test in a
 * process, which a signal would end.
 */
#define _GNU_SOURCE
#include "tests/api/steps.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN true
#else
#define HAS_TSAN false
#endif

/* Starts with more tensors than the device has room for, so that host memory is in use. */
static void start(struct rig *rig, const struct rig_options *options)
{
    struct rig_options complete = *options;

    complete.budget_pages = 8;
    rig_init(rig, &complete);
}

static void train(struct rig *rig, unsigned char *tensors[4], int steps)
{
    for (int step = 0; step < steps; step++) {
        RIG_OK(rig, capu_iteration_begin(rig->context, "train"));
        for (size_t i = 0; i < 4; i++) {
            step_bump(rig, "bump", tensors[i], PAGES(3));
        }
        RIG_OK(rig, capu_iteration_end(rig->context));
    }
}

static void make(struct rig *rig, unsigned char *tensors[4])
{
    static const char *const names[4] = {"a", "b", "c", "d"};

    for (size_t i = 0; i < 4; i++) {
        tensors[i] = step_tensor(rig, names[i], CAPU_PARAMETER, 3);
        step_set(rig, tensors[i], PAGES(3), 1);
    }
}

static bool is_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
           number == SIGTRAP || number == SIGABRT;
}

/* Sends every signal that can be blocked to this process, and checks that it is still pending after
   some training. If a thread of the library did not block it, it would end the process. */
static void send_all(struct rig *rig, unsigned char *tensors[4], bool with_faults)
{
    sigset_t pending;

    for (int number = 1; number <= SIGRTMAX; number++) {
        if (number == SIGKILL || number == SIGSTOP || (number > 31 && number < SIGRTMIN) ||
            (is_fault(number) && !with_faults)) {
            continue;
        }
        ck_assert_int_eq(kill(getpid(), number), 0);
    }
    train(rig, tensors, 3);
    RIG_OK(rig, capu_flush(rig->context));
    RIG_OK(rig, capu_synchronize(rig->context));
    sigpending(&pending);
    ck_assert_int_eq(sigismember(&pending, SIGTERM), 1);
    ck_assert_int_eq(sigismember(&pending, SIGUSR1), 1);
    ck_assert_int_eq(sigismember(&pending, SIGSEGV), with_faults);
}

/* Pending signals go when this test's process ends; the stop signals cancel each other. */
START_TEST(signals_that_the_program_blocks_stay_pending)
{
    bool is_blocked_first = _i % 2 == 0;
    struct rig rig;
    unsigned char *tensors[4];
    sigset_t all;

    sigfillset(&all);
    if (is_blocked_first) {
        pthread_sigmask(SIG_SETMASK, &all, NULL);
    }
    start(&rig, &(struct rig_options){.mode = _i < 2 ? 0 : CAPU_MODE_GUIDED});
    make(&rig, tensors);
    train(&rig, tensors, 2);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    send_all(&rig, tensors, is_blocked_first && !HAS_TSAN);
    rig_finish(&rig);
}
END_TEST

static volatile sig_atomic_t handled;
static pthread_t program_thread;

static void handle(int number)
{
    (void)number;
    handled += pthread_equal(pthread_self(), program_thread) ? 1 : 1000;
}

/* A handler of the program runs on the program's thread only. */
START_TEST(handlers_run_on_the_programs_thread)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct rig rig;
    unsigned char *tensors[4];

    program_thread = pthread_self();
    sigaction(SIGUSR1, &action, NULL);
    start(&rig, &(struct rig_options){.mode = CAPU_MODE_GUIDED});
    make(&rig, tensors);
    for (int i = 0; i < 50; i++) {
        kill(getpid(), SIGUSR1);
        train(&rig, tensors, 1);
    }
    RIG_OK(&rig, capu_synchronize(rig.context));
    ck_assert_int_ge(handled, 1);
    ck_assert_int_le(handled, 50);
    rig_finish(&rig);
}
END_TEST

/* The reader of the report goes away. That costs the report, and nothing else. */
START_TEST(a_report_into_a_closed_pipe_is_an_error_of_the_report)
{
    char folder[] = "/tmp/capuchin-pipe-XXXXXX";
    char path[sizeof(folder) + 8];
    struct rig rig;
    unsigned char *tensors[4];
    int reader;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/pipe", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(reader, 0);
    start(&rig, &(struct rig_options){.report_path = path});
    make(&rig, tensors);
    train(&rig, tensors, 2);
    RIG_OK(&rig, capu_synchronize(rig.context));
    RIG_OK(&rig, capu_flush(rig.context));
    close(reader);
    train(&rig, tensors, 3);
    RIG_OK(&rig, capu_synchronize(rig.context));
    STEP_FAILS(&rig, capu_flush(rig.context), CAPU_FILE_FAILED, path);
    STEP_FAILS(&rig, capu_flush(rig.context), CAPU_FILE_FAILED, "Broken pipe");
    train(&rig, tensors, 2);
    step_expect(&rig, tensors[2], PAGES(3), 8);
    rig_finish(&rig);
    unlink(path);
    rmdir(folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api process");
    TCase *cases = tcase_create("process");

    tcase_add_loop_test(cases, signals_that_the_program_blocks_stay_pending, 0, 4);
    tcase_add_test(cases, handlers_run_on_the_programs_thread);
    tcase_add_test(cases, a_report_into_a_closed_pipe_is_an_error_of_the_report);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
