/* The socket for `capuchin top`: what it says, who may read it, and when it is there. */
#define _GNU_SOURCE
#include "base/user_folder.h"
#include "capuchin/private.h"
#include "tests/api/steps.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether threads work in a child of fork. TSan starts none there, and the locks of ASan's
   allocator stay as the parent's threads, which may just be starting, had them at the fork. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HAS_THREADS_IN_CHILDREN false
#else
#define HAS_THREADS_IN_CHILDREN true
#endif

static char folder[] = "/tmp/capuchin-top-XXXXXX";

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("XDG_RUNTIME_DIR", folder, 1);
    setenv("CAPUCHIN_TOP", "1", 1);
}

static void teardown(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void socket_path(pid_t process, char path[108])
{
    snprintf(path, 108, "%s/capuchin/%ld.sock", folder, (long)process);
}

/* A connection to a process; -1: errno says why there is none. */
static int connect_to(pid_t process)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error;

    ck_assert_int_ge(socket_, 0);
    socket_path(process, address.sun_path);
    if (connect(socket_, (struct sockaddr *)&address, sizeof(address)) == 0) {
        return socket_;
    }
    error = errno;
    close(socket_);
    errno = error;
    return -1;
}

/* What a process answers: one line; NULL: nothing. */
static json_t *ask(pid_t process)
{
    static char text[1 << 20];
    size_t length = 0;
    ssize_t got = 1;
    int client = connect_to(process);

    ck_assert_msg(client >= 0, "connect: %s", strerror(errno));
    while (got > 0) {
        got = read(client, text + length, sizeof(text) - 1 - length);
        ck_assert_int_ge(got, 0);
        length += (size_t)got;
    }
    close(client);
    if (length == 0) {
        return NULL;
    }
    text[length] = '\0';
    ck_assert_ptr_eq(strchr(text, '\n'), text + length - 1);
    return json_loads(text, JSON_REJECT_DUPLICATES, NULL);
}

static json_t *context_at(const json_t *line, size_t index)
{
    json_t *context = json_array_get(json_object_get(line, "contexts"), index);

    ck_assert_ptr_nonnull(context);
    return context;
}

static uint64_t number_at(const json_t *object, const char *key)
{
    const json_t *number = json_object_get(object, key);

    ck_assert_msg(json_is_integer(number), "%s", key);
    return (uint64_t)json_integer_value(number);
}

static size_t count_contexts(pid_t process)
{
    json_t *line = ask(process);
    size_t count = json_array_size(json_object_get(line, "contexts"));

    json_decref(line);
    return count;
}

static void train(struct rig *rig, unsigned char *weights, unsigned char *activations, int count)
{
    for (int i = 0; i < count; i++) {
        RIG_OK(rig, capu_iteration_begin(rig->context, "train"));
        step_bump(rig, "weigh", weights, PAGES(3));
        step_set(rig, activations, PAGES(2), 1);
        RIG_OK(rig, capu_iteration_end(rig->context));
    }
    RIG_OK(rig, capu_synchronize(rig->context));
}

START_TEST(the_counters_are_those_of_the_report)
{
    struct rig rig;
    struct report report = {0};
    unsigned char *weights;
    json_t *line;
    json_t *context;
    json_t *counters;
    json_t *kinds;

    rig_init(&rig, &(struct rig_options){.budget_pages = 16});
    line = ask(getpid());
    ck_assert(json_is_null(json_object_get(context_at(line, 0), "report")));
    json_decref(line);
    weights = step_tensor(&rig, "w", CAPU_PARAMETER, 3);
    step_set(&rig, weights, PAGES(3), 1);
    train(&rig, weights, step_tensor(&rig, "a", CAPU_ACTIVATION, 2), 3);
    report = rig_report(&rig);
    line = ask(getpid());
    ck_assert_str_eq(json_string_value(json_object_get(line, "type")), "top");
    ck_assert_uint_eq(number_at(line, "version"), 1);
    ck_assert_uint_eq(number_at(line, "pid"), (uint64_t)getpid());
    context = context_at(line, 0);
    ck_assert_str_eq(json_string_value(json_object_get(context, "mode")), "passive");
    ck_assert_uint_eq(number_at(context, "budget_bytes"), PAGES(16));
    ck_assert_uint_eq(number_at(context, "held_bytes"), PAGES(5));
    ck_assert_uint_eq(json_array_size(json_object_get(context, "times_ns")), 3);
    ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(context, "times_ns"), 2)),
                     (json_int_t)report.time_ns);
    kinds = json_object_get(context, "live_bytes");
    ck_assert_uint_eq(number_at(kinds, "parameter"), PAGES(3));
    ck_assert_uint_eq(number_at(kinds, "activation"), PAGES(2));
    ck_assert_uint_eq(number_at(kinds, "gradient"), 0);
    counters = json_object_get(context, "report");
    ck_assert_str_eq(json_string_value(json_object_get(counters, "label")), "train");
#define CHECK_COUNTER(name, unit, text)                             \
    if (report.name != CAPU_NOT_TIMED) {                            \
        ck_assert_uint_eq(number_at(counters, #name), report.name); \
    }
    REPORT_COUNTERS(CHECK_COUNTER)
    json_decref(line);
    rig_finish(&rig);
}
END_TEST

START_TEST(only_the_user_can_enter)
{
    struct rig rig;
    struct stat stat;
    char path[108];

    umask(0);
    rig_init(&rig, &(struct rig_options){0});
    socket_path(getpid(), path);
    ck_assert_int_eq(lstat(path, &stat), 0);
    ck_assert(S_ISSOCK(stat.st_mode));
    ck_assert_uint_eq(stat.st_mode & 07777, 0600);
    *strrchr(path, '/') = '\0';
    ck_assert_int_eq(lstat(path, &stat), 0);
    ck_assert_uint_eq(stat.st_mode & 07777, 0700);
    rig_finish(&rig);
}
END_TEST

/* Root can enter every folder, and still learns nothing from another user's program. */
START_TEST(another_user_is_disconnected)
{
    int ready[2];
    char byte;
    pid_t child;

    if (geteuid() != 0) {
        return;
    }
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(chown(folder, 65534, 65534), 0);
    child = fork();
    if (child == 0) {
        struct rig rig;

        if (setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(1);
        }
        rig_init(&rig, &(struct rig_options){0});
        if (write(ready[1], "r", 1) != 1) {
            _exit(1);
        }
        pause();
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_ptr_null(ask(child));
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
END_TEST

START_TEST(all_contexts_share_one_socket)
{
    struct rig rigs[3];
    char path[108];

    for (size_t i = 0; i < 3; i++) {
        rig_init(&rigs[i], &(struct rig_options){0});
        ck_assert_uint_eq(count_contexts(getpid()), i + 1);
    }
    rig_finish(&rigs[1]);
    ck_assert_uint_eq(count_contexts(getpid()), 2);
    rig_finish(&rigs[0]);
    rig_finish(&rigs[2]);
    socket_path(getpid(), path);
    ck_assert_int_eq(access(path, F_OK), -1);
    /* And once more. */
    rig_init(&rigs[0], &(struct rig_options){0});
    ck_assert_uint_eq(count_contexts(getpid()), 1);
    rig_finish(&rigs[0]);
    ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

/* Neither one that is silent, nor one that talks, nor one that does not read keeps others out. */
START_TEST(clients_cannot_disturb)
{
    static char junk[4096];
    struct rig rig;
    int clients[6];

    rig_init(&rig, &(struct rig_options){0});
    memset(junk, 0xFF, sizeof(junk));
    for (size_t i = 0; i < 6; i++) {
        clients[i] = connect_to(getpid());
        ck_assert_int_ge(clients[i], 0);
        if (i % 2 == 0) {
            (void)send(clients[i], junk, sizeof(junk), MSG_NOSIGNAL);
        }
    }
    ck_assert_uint_eq(count_contexts(getpid()), 1);
    for (size_t i = 0; i < 6; i++) {
        close(clients[i]);
    }
    ck_assert_uint_eq(count_contexts(getpid()), 1);
    rig_finish(&rig);
}
END_TEST

START_TEST(it_is_off_by_default)
{
    struct rig rig;
    char path[108];

    unsetenv("CAPUCHIN_TOP");
    rig_init(&rig, &(struct rig_options){0});
    socket_path(getpid(), path);
    ck_assert_int_eq(access(path, F_OK), -1);
    rig_finish(&rig);
}
END_TEST

static capu_status create(uint32_t top, capu_context **context, char *error)
{
    capu_config config = CAPU_CONFIG_INIT;

    config.device = "host";
    config.budget_bytes = 1 << 20;
    config.mode = CAPU_MODE_OFF;
    config_set_number(&config, "top", top);
    config.error = error;
    config.error_bytes = 256;
    return capu_context_create(&config, context);
}

/* In the mode off, too: the setting asks for the counters. */
START_TEST(the_setting_turns_it_on)
{
    capu_context *context;
    char error[256] = "";

    unsetenv("CAPUCHIN_TOP");
    ck_assert_int_eq(create(1, &context, error), CAPU_OK);
    ck_assert_int_eq(capu_iteration_begin(context, NULL), CAPU_OK);
    ck_assert_int_eq(capu_iteration_end(context), CAPU_OK);
    ck_assert_int_eq(capu_synchronize(context), CAPU_OK);
    {
        json_t *line = ask(getpid());
        json_t *entry = context_at(line, 0);

        ck_assert_uint_eq(number_at(json_object_get(entry, "report"), "iteration"), 1);
        json_decref(line);
    }
    capu_context_destroy(context);
}
END_TEST

START_TEST(a_folder_that_others_can_enter_is_an_error)
{
    capu_context *context;
    char error[256] = "";
    char path[128];

    snprintf(path, sizeof(path), "%s/capuchin", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(chmod(path, 0755), 0);
    ck_assert_int_eq(create(1, &context, error), CAPU_FILE_FAILED);
    ck_assert_msg(strstr(error, path) != NULL && strstr(error, "Permission denied") != NULL, "%s",
                  error);
}
END_TEST

START_TEST(a_name_that_is_too_long_is_an_error)
{
    capu_context *context;
    char error[256] = "";
    char path[160];

    memset(path, 'x', sizeof(path));
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    setenv("XDG_RUNTIME_DIR", path, 1);
    ck_assert_int_eq(create(1, &context, error), CAPU_FILE_FAILED);
    ck_assert_ptr_nonnull(strstr(error, "top: the folder for sockets, '/xxx"));
}
END_TEST

static void allow_descriptors(rlim_t count)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = count;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The number of the next descriptor. */
static rlim_t next_descriptor(void)
{
    int descriptor = dup(STDIN_FILENO);

    ck_assert_int_ge(descriptor, 0);
    close(descriptor);
    return (rlim_t)descriptor;
}

/* One descriptor more each time, until a context can be created; nothing is left of the others. */
START_TEST(missing_descriptors_are_an_error)
{
    rlim_t count = next_descriptor();
    capu_context *context;
    bool is_top = false;
    char path[108];
    capu_status status;

    socket_path(getpid(), path);
    do {
        char error[256] = "";

        allow_descriptors(count++);
        status = create(1, &context, error);
        ck_assert_msg(status == CAPU_OK || status == CAPU_SYSTEM_LIMIT, "%d: %s", (int)status,
                      error);
        ck_assert_int_eq(access(path, F_OK), status == CAPU_OK ? 0 : -1);
        is_top |= strstr(error, "top: no descriptor for a socket") != NULL;
    } while (status != CAPU_OK);
    ck_assert(is_top);
    capu_context_destroy(context);
    ck_assert_int_eq(next_descriptor() < count, 1);
}
END_TEST

/* A client that connects while there is none left waits until there is one. */
START_TEST(a_client_waits_for_a_descriptor)
{
    struct rig rig;
    int ready[2];
    char byte;
    pid_t child;
    int status;

    ck_assert_int_eq(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        json_t *line = read(ready[0], &byte, 1) == 1 ? ask(getppid()) : NULL;

        _exit(line != NULL ? 0 : 1);
    }
    rig_init(&rig, &(struct rig_options){0});
    allow_descriptors(next_descriptor());
    ck_assert_int_eq(write(ready[1], "r", 1), 1);
    usleep(50000);
    ck_assert_int_eq(waitpid(child, &status, WNOHANG), 0);
    allow_descriptors(1024);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    rig_finish(&rig);
}
END_TEST

/* A process that had the same number has left its socket. */
START_TEST(a_stale_socket_is_replaced)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct rig rig;
    char path[USER_FOLDER_BYTES];
    int stale = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_int_eq(user_folder_path(0, path), 0);
    ck_assert_int_eq(user_folder_make(path), 0);
    socket_path(getpid(), address.sun_path);
    ck_assert_int_eq(bind(stale, (struct sockaddr *)&address, sizeof(address)), 0);
    close(stale);
    ck_assert_int_eq(connect_to(getpid()), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    rig_init(&rig, &(struct rig_options){0});
    ck_assert_uint_eq(count_contexts(getpid()), 1);
    rig_finish(&rig);
}
END_TEST

/* Its descriptors stay open in the child, which answers no client. */
START_TEST(a_child_does_not_serve)
{
    struct rig rig;
    int done[2];
    char byte;
    pid_t child;
    int status;

    rig_init(&rig, &(struct rig_options){0});
    ck_assert_int_eq(pipe(done), 0);
    child = fork();
    if (child == 0) {
        capu_context_destroy(rig.context); /* does nothing here */
        _exit(read(done[0], &byte, 1) == 1 ? 0 : 1);
    }
    ck_assert_int_eq(connect_to(child), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_uint_eq(count_contexts(getpid()), 1);
    ck_assert_int_eq(write(done[1], "d", 1), 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(count_contexts(getpid()), 1);
    rig_finish(&rig);
}
END_TEST

START_TEST(a_child_serves_contexts_of_its_own)
{
    struct rig rig;
    int done[2];
    int made[2];
    char byte;
    pid_t child;
    int status;

    rig_init(&rig, &(struct rig_options){0});
    ck_assert_int_eq(pipe(done), 0);
    ck_assert_int_eq(pipe(made), 0);
    child = fork();
    if (child == 0) {
        char error[256];
        capu_context *context;

        if (create(1, &context, error) != CAPU_OK || write(made[1], "m", 1) != 1 ||
            read(done[0], &byte, 1) != 1) {
            _exit(1);
        }
        capu_context_destroy(context);
        _exit(0);
    }
    ck_assert_int_eq(read(made[0], &byte, 1), 1);
    ck_assert_uint_eq(count_contexts(child), 1);
    ck_assert_uint_eq(count_contexts(getpid()), 1);
    ck_assert_int_eq(write(done[1], "d", 1), 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(connect_to(child), -1);
    ck_assert_uint_eq(count_contexts(getpid()), 1);
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api/top");
    TCase *tests = tcase_create("top");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_counters_are_those_of_the_report);
    tcase_add_test(tests, only_the_user_can_enter);
    tcase_add_test(tests, another_user_is_disconnected);
    tcase_add_test(tests, all_contexts_share_one_socket);
    tcase_add_test(tests, clients_cannot_disturb);
    tcase_add_test(tests, it_is_off_by_default);
    tcase_add_test(tests, the_setting_turns_it_on);
    tcase_add_test(tests, a_folder_that_others_can_enter_is_an_error);
    tcase_add_test(tests, a_name_that_is_too_long_is_an_error);
    tcase_add_test(tests, missing_descriptors_are_an_error);
    tcase_add_test(tests, a_client_waits_for_a_descriptor);
    tcase_add_test(tests, a_stale_socket_is_replaced);
    tcase_add_test(tests, a_child_does_not_serve);
    if (HAS_THREADS_IN_CHILDREN) {
        tcase_add_test(tests, a_child_serves_contexts_of_its_own);
    }
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
