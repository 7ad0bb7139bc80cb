/*
 * The library in a process with signals, pipes and children of its own. Check runs each test in a
 * process, which a signal would end.
 */
#define _GNU_SOURCE
#include "capuchin/drop_in.h"
#include "tests/api/steps.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static capu_status nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

/* In a child: every call returns the error. Returns the number of the first that does not, or 0.
   Not with Check's assertions, which would report to the parent. */
static int call_everything(capu_context *context, unsigned char *tensor)
{
    capu_operand operand = capu_operand_of(tensor, 0, CAPU_UPDATE);
    capu_op op = {.size = sizeof(op),
                  .name = "child",
                  .run = nothing,
                  .operands = &operand,
                  .operand_count = 1};
    capu_tensor_state state = {.size = sizeof(state)};
    capu_report report = CAPU_REPORT_INIT;
    void *address = NULL;
    uint64_t held = 77;
    int first = 0;
    int number = 0;

#define CALL(call_)                                  \
    do {                                             \
        number++;                                    \
        if ((call_) != CAPU_WRONG_ORDER && !first) { \
            first = number;                          \
        }                                            \
    } while (0)

    CALL(capu_malloc(context, 100, &address));
    CALL(capu_free(context, tensor));
    CALL(capu_free(context, NULL));
    CALL(capu_split(context, tensor, 100));
    CALL(CAPU_DESCRIBE(context, tensor, .name = "x"));
    CALL(capu_tensor_query(context, tensor, &state));
    CALL(capu_iteration_begin(context, "train"));
    CALL(capu_iteration_end(context));
    CALL(capu_run(context, &op));
    CALL(capu_access_begin(context, &op));
    CALL(capu_access_end(context));
    CALL(capu_segment_begin(context, "s"));
    CALL(capu_segment_end(context));
    CALL(capu_upload(context, tensor, &op, 1, 0));
    CALL(capu_download(context, &held, tensor, 1, 0));
    CALL(capu_copy(context, tensor, tensor + 1, 1));
    CALL(capu_zero(context, tensor, 1));
    CALL(capu_synchronize(context));
    CALL(capu_flush(context));
    CALL(capu_report_get(context, &report));
    CALL(capu_memory_print(context, stderr));
    capu_context_make_current(context);
    CALL(capu_drop_in_synchronize());
    CALL(capu_drop_in_memcpy(tensor, &held, 1, CAPU_HOST_TO_DEVICE));
    CALL(capu_drop_in_memset(tensor, 0, 1));
#undef CALL
    capu_memory_usage(context, &held, NULL, NULL);
    if (first == 0 && (held != 77 || strstr(capu_last_error(context), "fork") == NULL)) {
        first = -1;
    }
    capu_context_destroy(context);
    return first;
}

static int result_of(pid_t child)
{
    int result = -1;

    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_msg(WIFEXITED(result), "the child ended by signal %d", WTERMSIG(result));
    return (signed char)WEXITSTATUS(result);
}

/* In every mode, while copies are under way and inside an access, too. */
START_TEST(a_child_gets_an_error_from_every_call)
{
    static const uint32_t modes[] = {CAPU_MODE_OFF, CAPU_MODE_PASSIVE, CAPU_MODE_GUIDED};
    struct rig rig;
    unsigned char *tensors[4];
    pid_t child;

    if (modes[_i] == CAPU_MODE_OFF) {
        rig_init(&rig, &(struct rig_options){.mode = CAPU_MODE_OFF});
    } else {
        start(&rig, &(struct rig_options){.mode = modes[_i]});
    }
    make(&rig, tensors);
    train(&rig, tensors, 4);
    child = fork();
    if (child == 0) {
        _exit(call_everything(rig.context, tensors[0]));
    }
    train(&rig, tensors, 4);
    ck_assert_int_eq(result_of(child), 0);
    step_expect(&rig, tensors[1], PAGES(3), 9);
    rig_finish(&rig);
}
END_TEST

/* The child uses a context of its own, also one that takes the place of the parent's. */
START_TEST(a_child_may_have_a_context_of_its_own)
{
    struct rig rig;
    unsigned char *tensors[4];
    pid_t child;

    start(&rig, &(struct rig_options){0});
    make(&rig, tensors);
    train(&rig, tensors, 3);
    child = fork();
    if (child == 0) {
        capu_config config = CAPU_CONFIG_INIT;
        capu_context *context = NULL;
        void *address = NULL;
        bool works;

        capu_context_destroy(rig.context);
        config.device = "host";
        config.budget_bytes = PAGES(64);
        config.page_bytes = RIG_PAGE;
        works = capu_context_create(&config, &context) == CAPU_OK &&
                capu_malloc(context, PAGES(2), &address) == CAPU_OK &&
                capu_zero(context, address, PAGES(2)) == CAPU_OK &&
                capu_synchronize(context) == CAPU_OK;
        capu_context_destroy(context);
        _exit(works ? 0 : 1);
    }
    ck_assert_int_eq(result_of(child), 0);
    step_expect(&rig, tensors[3], PAGES(3), 4);
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api process");
    TCase *cases = tcase_create("process");

    tcase_add_loop_test(cases, signals_that_the_program_blocks_stay_pending, 0, 4);
    tcase_add_test(cases, a_report_into_a_closed_pipe_is_an_error_of_the_report);
    tcase_add_loop_test(cases, a_child_gets_an_error_from_every_call, 0, 3);
    if (!HAS_TSAN) { /* which does not start threads in children */
        tcase_add_test(cases, a_child_may_have_a_context_of_its_own);
    }
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
