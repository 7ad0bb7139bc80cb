/*
 * A system that runs out of threads, descriptors or file size. Wherever that happens, creating a
 * context either works or fails with an error that names what ran out, and a context that exists
 * trains to its end. Check runs each test in a process of its own, which may set its own limits.
 *
 * The linker (--wrap) replaces pthread_create in the objects of this executable.
 */
#define _GNU_SOURCE
#include "tests/fault/program.h"

#include "runtime/context/config.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_DESCRIPTORS = 16, MOST_THREADS = 32 };

static const uint32_t modes[] = {CAPU_MODE_OFF, CAPU_MODE_PASSIVE, CAPU_MODE_GUIDED};

static char text[512];
static atomic_long threads_left = -1; /* threads that may still start; -1: any number */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *argument), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *argument), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *argument), void *argument)
{
    long left = atomic_load(&threads_left);

    while (left > 0 && !atomic_compare_exchange_weak(&threads_left, &left, left - 1)) {
    }
    return left == 0 ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

/* Creates a context as the rig does, but without adaptors, and it may fail. It makes no assertion,
   which would need what has run out: Check writes to a file. */
static capu_status create(uint32_t mode, const char *report_path, capu_context **context)
{
    const struct device_options options = {.memory_bytes = PROGRAM_BUDGET_PAGES * RIG_PAGE,
                                           .page_bytes = RIG_PAGE};
    capu_config config = CAPU_CONFIG_INIT;
    struct device *device = NULL;
    struct config complete;
    capu_status status;

    config.mode = mode;
    config.budget_bytes = options.memory_bytes;
    config.host_budget_bytes = PROGRAM_HOST_PAGES * RIG_PAGE;
    config.report_path = report_path;
    text[0] = '\0';
    *context = NULL;
    status = config_resolve(&config, &complete, text, sizeof(text));
    if (status != CAPU_OK) {
        return status;
    }
    status = rig_device_create(&options, &device, text, sizeof(text));
    if (status == CAPU_OK) {
        status = context_create_on(device, &complete, context, text, sizeof(text));
    }
    if (status != CAPU_OK) {
        device_destroy(device);
        config_finish(&complete);
    }
    return status;
}

/* Trains, except in off mode, where the program does not fit. Makes no assertion either. */
static void train(capu_context *context, uint32_t mode, struct program *program)
{
    *program = (struct program){.context = context, .keeps_input = mode == CAPU_MODE_GUIDED};
    if (mode != CAPU_MODE_OFF) {
        program_run(program);
    }
}

static void check_training(const struct program *program, uint32_t mode)
{
    ck_assert_msg(program->status == CAPU_OK && !program->is_wrong, "%s: %s",
                  capu_status_name(program->status), capu_last_error(program->context));
    if (mode != CAPU_MODE_OFF) {
        ck_assert_mem_eq(program->sums, program_sums, sizeof(program_sums));
    }
}

/* Sets the soft limit only, so that it can be raised again. RLIM_INFINITY: as the hard one. */
static void set_limit(__rlimit_resource_t resource, rlim_t value)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) == 0) {
        limit.rlim_cur = value < limit.rlim_max ? value : limit.rlim_max;
        (void)setrlimit(resource, &limit);
    }
}

/* Leaves this many descriptors. */
static void leave_descriptors(unsigned count)
{
    int lowest = dup(0);

    ck_assert_int_ge(lowest, 0);
    close(lowest);
    set_limit(RLIMIT_NOFILE, (rlim_t)lowest + count);
}

/* The fake GPU is there before anything runs out. */
static void begin(void)
{
    capu_context *context;

    ck_assert_int_eq(create(CAPU_MODE_PASSIVE, NULL, &context), CAPU_OK);
    capu_context_destroy(context);
}

/* A GPU's driver may fail where the host device does, and gives its own reason. */
static bool is_drivers(capu_status status)
{
    return status == CAPU_NO_HOST_MEMORY && strstr(text, "cudaStreamCreate") != NULL;
}

/* With 0, 1, 2, ... descriptors left, until creation succeeds. Training then needs none. */
START_TEST(descriptors_run_out)
{
    uint32_t mode = modes[_i];
    capu_context *context = NULL;
    struct program program;
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (unsigned left = 0; context == NULL; left++) {
        capu_status status;

        ck_assert_uint_le(left, MOST_DESCRIPTORS);
        leave_descriptors(left);
        status = create(mode, NULL, &context);
        set_limit(RLIMIT_NOFILE, limit.rlim_cur);
        ck_assert_msg(status == CAPU_OK ||
                          (status == CAPU_SYSTEM_LIMIT && strstr(text, "descriptor") != NULL &&
                           strstr(text, "Too many open files") != NULL),
                      "%u left: %s: %s", left, capu_status_name(status), text);
    }
    leave_descriptors(0);
    train(context, mode, &program);
    set_limit(RLIMIT_NOFILE, limit.rlim_cur);
    check_training(&program, mode);
    capu_context_destroy(context);
}
END_TEST

/* Files that are to be written do need descriptors. Without them training goes on, too. */
START_TEST(a_report_without_descriptors_is_an_error_of_the_report)
{
    char folder[] = "/tmp/capuchin-limits-XXXXXX";
    char path[sizeof(folder) + 8];
    capu_context *context = NULL;
    struct program program;
    struct rlimit limit;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/report", folder);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (unsigned left = 0; context == NULL; left++) {
        capu_status status;

        ck_assert_uint_le(left, MOST_DESCRIPTORS);
        leave_descriptors(left);
        status = create(CAPU_MODE_PASSIVE, path, &context);
        set_limit(RLIMIT_NOFILE, limit.rlim_cur);
        ck_assert_msg(status == CAPU_OK || strstr(text, "Too many open files") != NULL,
                      "%u left: %s: %s", left, capu_status_name(status), text);
    }
    leave_descriptors(0);
    train(context, CAPU_MODE_PASSIVE, &program);
    set_limit(RLIMIT_NOFILE, limit.rlim_cur);
    ck_assert_int_eq(program.status, CAPU_FILE_FAILED); /* it flushes before its end */
    ck_assert_msg(strstr(capu_last_error(context), "Too many open files") != NULL, "%s",
                  capu_last_error(context));
    capu_context_destroy(context);
    unlink(path);
    rmdir(folder);
}
END_TEST

/* A program that forbids itself all descriptors can still fork. */
START_TEST(a_child_without_descriptors_lives)
{
    capu_context *context;
    struct program program;
    struct rlimit limit;
    int result = -1;
    pid_t child;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(create(CAPU_MODE_PASSIVE, NULL, &context), CAPU_OK);
    set_limit(RLIMIT_NOFILE, 0);
    child = fork();
    if (child == 0) {
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(result, 0);
    train(context, CAPU_MODE_PASSIVE, &program);
    check_training(&program, CAPU_MODE_PASSIVE);
    capu_context_destroy(context);
    set_limit(RLIMIT_NOFILE, limit.rlim_cur); /* a leak checker needs some */
}
END_TEST

/* The first thread that is needed does not start, then the second, and so on. */
START_TEST(threads_run_out)
{
    uint32_t mode = modes[_i];
    capu_context *context = NULL;
    struct program program;

    for (long left = 0; context == NULL; left++) {
        capu_status status;

        ck_assert_int_le(left, MOST_THREADS);
        atomic_store(&threads_left, left);
        status = create(mode, NULL, &context);
        ck_assert_msg(status == CAPU_OK || is_drivers(status) ||
                          (status == CAPU_SYSTEM_LIMIT && strstr(text, "thread") != NULL),
                      "%ld left: %s: %s", left, capu_status_name(status), text);
        ck_assert_msg(left > 0 || status != CAPU_OK, "the agent needs threads");
    }
    atomic_store(&threads_left, 0);
    train(context, mode, &program);
    check_training(&program, mode);
    capu_context_destroy(context);
}
END_TEST

/* The host device's memory is a file. Its size is checked before the kernel would send SIGXFSZ. */
START_TEST(a_file_size_limit_is_an_error)
{
    capu_context *context;
    struct program program;
    capu_status status;

    set_limit(RLIMIT_FSIZE, PROGRAM_BUDGET_PAGES * RIG_PAGE - 1);
    status = create(CAPU_MODE_PASSIVE, NULL, &context);
    set_limit(RLIMIT_FSIZE, RLIM_INFINITY);
    if (status == CAPU_OK) { /* cuda: no file */
        capu_context_destroy(context);
    } else {
        ck_assert_int_eq(status, CAPU_SYSTEM_LIMIT);
        ck_assert_msg(strstr(text, "file size") != NULL, "%s", text);
    }
    /* At the limit it works, and a limit that comes later changes nothing. */
    set_limit(RLIMIT_FSIZE, PROGRAM_BUDGET_PAGES * RIG_PAGE);
    status = create(CAPU_MODE_PASSIVE, NULL, &context);
    set_limit(RLIMIT_FSIZE, 0);
    train(context, CAPU_MODE_PASSIVE, &program);
    set_limit(RLIMIT_FSIZE, RLIM_INFINITY);
    ck_assert_int_eq(status, CAPU_OK);
    check_training(&program, CAPU_MODE_PASSIVE);
    capu_context_destroy(context);
}
END_TEST

/* A report that reaches the limit is an error of the report. */
START_TEST(a_report_that_is_too_large_is_an_error_of_the_report)
{
    char path[] = "/tmp/capuchin-limits-XXXXXX";
    int file = mkstemp(path);
    capu_context *context;
    struct program program;
    capu_status status;

    ck_assert_int_ge(file, 0);
    close(file);
    ck_assert_int_eq(create(CAPU_MODE_PASSIVE, path, &context), CAPU_OK);
    set_limit(RLIMIT_FSIZE, 100);
    train(context, CAPU_MODE_PASSIVE, &program);
    status = capu_flush(context);
    set_limit(RLIMIT_FSIZE, RLIM_INFINITY);
    ck_assert_int_eq(program.status, CAPU_FILE_FAILED); /* it flushes at its end */
    ck_assert_int_eq(status, CAPU_FILE_FAILED);
    ck_assert_msg(strstr(capu_last_error(context), "File too large") != NULL, "%s",
                  capu_last_error(context));
    capu_context_destroy(context);
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault limits");
    TCase *cases = tcase_create("limits");

    tcase_add_checked_fixture(cases, begin, NULL);
    tcase_add_loop_test(cases, descriptors_run_out, 0, 3);
    tcase_add_test(cases, a_report_without_descriptors_is_an_error_of_the_report);
    tcase_add_test(cases, a_child_without_descriptors_lives);
    tcase_add_loop_test(cases, threads_run_out, 0, 3);
    tcase_add_test(cases, a_file_size_limit_is_an_error);
    tcase_add_test(cases, a_report_that_is_too_large_is_an_error_of_the_report);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
