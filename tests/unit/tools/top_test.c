/* `capuchin top`, asked about programs that are made up: what it shows of them, and what it rejects
   or removes. The program of the last test is a real one. */
#define _GNU_SOURCE
#include "tests/unit/tools/fixture.h"
#include "tests/unit/tools/terminal.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static char sockets[128]; /* the folder */

static void setup(void)
{
    make_folder();
    setenv("XDG_RUNTIME_DIR", folder, 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TERM", "xterm", 1);
    snprintf(sockets, sizeof(sockets), "%s/capuchin", folder);
    ck_assert_int_eq(mkdir(sockets, 0700), 0);
}

/* Only the programs of this test: others of the user may run. */
static int run_top(const char *options)
{
    char arguments[256];

    snprintf(arguments, sizeof(arguments), "top --folder %s %s", sockets, options);
    return run(arguments);
}

/* A context in steady state; the numbers are round, so that what is shown can be seen from them. */
#define REPORT                                                                                   \
    "{\"type\":\"report\",\"version\":1,\"mode\":\"guided\",\"label\":\"train\",\"plan_error\":" \
    "\"\","                                                                                      \
    "\"iteration\":42,\"time_ns\":300000000,\"peak_bytes\":3221225472,"                          \
    "\"live_peak_bytes\":6442450944,\"floor_bytes\":1073741824,\"host_bytes\":2147483648,"       \
    "\"evicted_bytes\":3000000000,\"prefetched_bytes\":1500000000,\"predicted_ns\":290000000,"   \
    "\"diverged\":0,\"plan_stage\":2}"
#define CONTEXT(report_)                                                                           \
    "{\"context\":1,\"device\":\"cuda\",\"mode\":\"guided\",\"planner\":\"hybrid\","               \
    "\"budget_bytes\":4294967296,\"d2h_bytes_per_s\":20000000000,\"h2d_bytes_per_s\":0,"           \
    "\"held_bytes\":2147483648,\"age_ns\":2000000000,\"live_bytes\":{\"parameter\":1073741824,"    \
    "\"activation\":5368709120,\"gradient\":0},\"times_ns\":[100000000,200000000,170000000,"       \
    "300000000],\"stalls_iteration\":40,\"stalls\":[{\"access\":3,\"op\":\"mul\",\"replay\":\"\"," \
    "\"wait_ns\":12000000},{\"access\":null,\"op\":\"\",\"replay\":\"gelu\",\"wait_ns\":1500000}]" \
    ","                                                                                            \
    "\"report\":" report_ "}"
#define LINE_FORMAT                                                                              \
    "{\"type\":\"top\",\"version\":1,\"pid\":%ld,\"program\":\"train\\u001b[31m\",\"contexts\":" \
    "[" CONTEXT(REPORT) "]}\n"

/* What a made-up program answers. %ld is its process. */
struct answer {
    const char *format;
    size_t bytes;     /* of filler before it */
    bool is_silent;   /* never answers, and never closes */
    const char *text; /* in the output of top; %ld is its process */
};

static void serve(int listener, const struct answer *answer, long process)
{
    static char text[1 << 21];
    size_t length = answer->bytes;

    memset(text, ' ', answer->bytes);
    length += (size_t)snprintf(text + length, sizeof(text) - length, answer->format, process);
    for (;;) {
        int client = accept(listener, NULL, NULL);

        if (!answer->is_silent) {
            (void)!send(client, text, length, MSG_NOSIGNAL);
            close(client);
        }
    }
}

/* Starts a program that answers everyone; it listens when this returns. */
static pid_t start_program(const struct answer *answer)
{
    int ready[2];
    char byte;
    pid_t child;

    ck_assert_int_eq(pipe(ready), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int listener = socket(AF_UNIX, SOCK_STREAM, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/capuchin/%ld.sock", folder,
                 (long)getpid());
        if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
            listen(listener, 8) != 0 || write(ready[1], "r", 1) != 1) {
            _exit(1);
        }
        serve(listener, answer, (long)getpid());
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void stop_program(pid_t child)
{
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

static bool has_socket(pid_t process)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/capuchin/%ld.sock", folder, (long)process);
    return access(path, F_OK) == 0;
}

static const struct answer good = {.format = LINE_FORMAT};

START_TEST(the_table_has_known_values)
{
    pid_t program = start_program(&good);
    char expected[4096];

    ck_assert_int_eq(run_top("--once"), 0);
    snprintf(expected, sizeof(expected),
             "train\\x1b[31m (process %ld), context 1: cuda, guided\n"
             "  iteration 42 of train, guided, complete 2 s ago\n"
             "  memory  [###############               ] 50 %%: 2.00 GiB of 4.00 GiB\n"
             "          peak 3.00 GiB, without a limit 6.00 GiB, floor 1.00 GiB, host 2.00 GiB\n"
             "  alive   parameter 1.00 GiB, activation 5.00 GiB\n"
             "  plan    hybrid, stage 2, predicts 290.000 ms\n"
             "  time    300.000 ms, median 200.000 ms  _=-#\n"
             "  link    out 2.79 GiB, 10.00 GB/s (50 %% of the link)\n"
             "          in 1.40 GiB, 5.00 GB/s\n"
             "  stalls     12.000 ms before mul\n"
             "              1.500 ms before the end, for the replay of gelu\n"
             "          in iteration 40\n",
             (long)program);
    ck_assert_str_eq(output, expected);
    stop_program(program);
}
END_TEST

/* By process, and each line as it was received. */
START_TEST(scripts_get_every_line)
{
    pid_t first = start_program(&good);
    pid_t second = start_program(&good);
    char text[128];

    ck_assert_int_eq(run_top("--once --json"), 0);
    snprintf(text, sizeof(text), "{\"programs\":[{\"type\":\"top\",\"version\":1,\"pid\":%ld,",
             (long)(first < second ? first : second));
    expect(text);
    snprintf(text, sizeof(text), "\"pid\":%ld,\"program\":\"train\\u001B[31m\"",
             (long)(first < second ? second : first));
    expect(text);
    expect("\"times_ns\":[100000000,200000000,170000000,300000000]");
    expect("\"rejected\":[],\"removed\":0}\n");
    stop_program(first);
    stop_program(second);
}
END_TEST

START_TEST(a_context_without_an_iteration_is_shown)
{
    static const struct answer answer = {
        .format = "{\"type\":\"top\",\"version\":1,\"pid\":%ld,\"program\":\"p\",\"contexts\":["
                  "{\"context\":1,\"device\":\"host\",\"mode\":\"off\",\"planner\":\"\","
                  "\"budget_bytes\":0,\"d2h_bytes_per_s\":0,\"h2d_bytes_per_s\":0,"
                  "\"held_bytes\":0,\"age_ns\":null,\"live_bytes\":{},\"times_ns\":[],"
                  "\"stalls_iteration\":0,\"stalls\":[],\"report\":null}]}\n"};
    pid_t program = start_program(&answer);

    ck_assert_int_eq(run_top("--once"), 0);
    expect(" 0 %: 0 B of 0 B\n  no iteration is complete yet\n");
    stop_program(program);
}
END_TEST

static const struct answer strange[] = {
    {.format = "{\"type\":\"top\",\"version\":2,\"pid\":%ld}\n",
     .text = "speaks version 2, and this command version 1"},
    {.format = "{\"type\":\"report\",\"version\":1,\"pid\":%ld}\n",
     .text = "is not from a program that uses capuchin"},
    {.format = "SSH-2.0-OpenSSH_9.2\r\n", .text = "says what is not a line of JSON"},
    {.format = "\xFF\xFE\x01\n", .text = "says what is not a line of JSON"},
    {.format = "[1,2]\n", .text = "says what is not a line of JSON"},
    {.format = "{\"type\":\"top\"", .text = "stops within its line"},
    {.format = "", .text = "says nothing"},
    {.format = "{\"type\":\"top\",\"version\":1,\"pid\":1,\"program\":\"p\",\"contexts\":[]}\n",
     .text = "answers for another process"},
    {.format = "{\"type\":\"top\",\"version\":1,\"pid\":%ld,\"program\":7,\"contexts\":[]}\n",
     .text = "the line lacks a valid \"program\""},
    {.format = "{\"type\":\"top\",\"version\":1,\"pid\":%ld,\"program\":\"\",\"contexts\":[[]]}\n",
     .text = "a context lacks a valid \"context\""},
    {.format =
         "{\"type\":\"top\",\"version\":1,\"pid\":%ld,\"program\":\"\",\"contexts\":[" CONTEXT(
             "{\"mode\":\"guided\"}") "]}\n",
     .text = "a report lacks a valid \"label\""},
    {.format = LINE_FORMAT, .bytes = (size_t)1 << 20, .text = "says more than 1048576 bytes"},
    {.format = "", .is_silent = true, .text = "does not answer"},
};

/* Named, and not shown; another program is. The socket stays, since its program lives. */
START_TEST(what_speaks_otherwise_is_rejected)
{
    pid_t program = start_program(&strange[_i]);
    pid_t other = start_program(&good);
    char text[256];

    ck_assert_int_eq(run_top("--once"), 0);
    snprintf(text, sizeof(text), "not shown: %s/capuchin/%ld.sock %s", folder, (long)program,
             strange[_i].text);
    expect(text);
    snprintf(text, sizeof(text), "(process %ld), context 1", (long)other);
    expect(text);
    ck_assert(has_socket(program));
    stop_program(program);
    stop_program(other);
}
END_TEST

START_TEST(a_program_that_has_ended_leaves_nothing)
{
    pid_t program = start_program(&good);

    ck_assert_int_eq(run_top("--once"), 0);
    stop_program(program);
    ck_assert(has_socket(program));
    ck_assert_int_eq(run_top("--once --json"), 0);
    expect("{\"programs\":[],\"rejected\":[],\"removed\":1}");
    ck_assert(!has_socket(program));
    ck_assert_int_eq(run_top("--once"), 0);
    ck_assert_str_eq(output, "No program offers its counters. Set CAPUCHIN_TOP=1 for those that "
                             "are to be shown.\n");
}
END_TEST

/* A child of the program has inherited the socket, which keeps it open but answers no client. */
START_TEST(an_orphaned_socket_is_removed)
{
    int heir[2];
    char byte;
    pid_t program;

    ck_assert_int_eq(pipe(heir), 0);
    program = fork();
    if (program == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int listener = socket(AF_UNIX, SOCK_STREAM, 0);

        close(heir[1]);
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/capuchin/%ld.sock", folder,
                 (long)getpid());
        if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
            listen(listener, 8) != 0) {
            _exit(1);
        }
        if (fork() == 0) {
            (void)!read(heir[0], &byte, 1); /* until the test has ended */
            _exit(0);
        }
        _exit(0);
    }
    ck_assert_int_eq(waitpid(program, NULL, 0), program);
    ck_assert_int_eq(run_top("--once --json"), 0);
    expect("{\"programs\":[],\"rejected\":[],\"removed\":1}");
    ck_assert(!has_socket(program));
}
END_TEST

START_TEST(what_is_no_socket_stays)
{
    write_file("capuchin/12345.sock", "mine");
    write_file("capuchin/notes.txt", "mine");
    ck_assert_int_eq(run_top("--once"), 0);
    expect("capuchin/12345.sock is not a socket\n");
    ck_assert_ptr_null(strstr(output, "notes"));
    shell("cat capuchin/12345.sock capuchin/notes.txt");
    ck_assert_str_eq(output, "minemine");
}
END_TEST

START_TEST(a_folder_that_others_can_enter_is_rejected)
{
    pid_t program = start_program(&good);

    shell("chmod 755 capuchin");
    ck_assert_int_eq(run_top("--once"), 0);
    expect("/capuchin is not safe: Permission denied\n");
    ck_assert_ptr_null(strstr(output, "context 1"));
    stop_program(program);
}
END_TEST

/* Without the option, programs in the runtime directory are shown, beside any others. */
START_TEST(the_runtime_directory_is_the_default)
{
    pid_t program = start_program(&good);
    char text[128];

    ck_assert_int_eq(run("top --once"), 0);
    snprintf(text, sizeof(text), "train\\x1b[31m (process %ld), context 1", (long)program);
    expect(text);
    shell("mkdir -m 700 other");
    ck_assert_int_eq(run("top --folder other --once"), 0);
    expect("No program offers its counters");
    ck_assert_int_eq(run("top --folder nowhere --once"), 0);
    expect("No program offers its counters");
    stop_program(program);
}
END_TEST

START_TEST(options_are_checked)
{
    RUN_COMMANDS({"top --json", 2, {"--json needs --once"}},
                 {"top --interval 0.01", 2, {"--interval 0.01: not between 0.1 and 3600 seconds"}},
                 {"top </dev/null",
                  2,
                  {CAPUCHIN_HAVE_NCURSES ? "top needs a terminal" : "install libncurses-dev"}});
}
END_TEST

#if CAPUCHIN_HAVE_NCURSES
/* Drawn on a terminal as in the table, in block characters. */
START_TEST(the_screen_has_known_values)
{
    pid_t program = start_program(&good);
    int terminal;
    pid_t child = terminal_start(&terminal, 80);
    char text[128];

    if (child == 0) {
        execl(CAPUCHIN_COMMAND, "capuchin", "top", "--folder", sockets, (char *)NULL);
        _exit(127);
    }
    terminal_read(terminal, "q: quit");
    snprintf(text, sizeof(text), "train\\x1b[31m (process %ld), context 1: cuda, guided",
             (long)program);
    terminal_expect(text);
    terminal_expect("iteration 42 of train, guided, complete 2 s ago");
    terminal_expect("50 %: 2.00 GiB of 4.00 GiB");
    terminal_expect("peak 3.00 GiB, without a limit 6.00 GiB, floor 1.00 GiB, host 2.00 GiB");
    terminal_expect("parameter 1.00 GiB, activation 5.00 GiB");
    terminal_expect("hybrid, stage 2, predicts 290.000 ms");
    terminal_expect("300.000 ms, median 200.000 ms");
    terminal_expect("\u2581\u2585\u2583\u2588");
    terminal_expect("out 2.79 GiB, 10.00 GB/s (50 % of the link)");
    terminal_expect("1.500 ms before the end, for the replay of gelu");
    ck_assert_int_eq(write(terminal, "q", 1), 1);
    ck_assert_int_eq(terminal_finish(terminal, child), 0);
    terminal_expect("\x1b[?1049l"); /* the former screen is back */
    stop_program(program);
}
END_TEST

/* The next update shows what has changed. */
START_TEST(the_screen_follows_the_programs)
{
    pid_t program = start_program(&good);
    int terminal;
    pid_t child = terminal_start(&terminal, 80);

    if (child == 0) {
        execl(CAPUCHIN_COMMAND, "capuchin", "top", "--folder", sockets, "--interval", "0.1",
              (char *)NULL);
        _exit(127);
    }
    terminal_read(terminal, "q: quit");
    stop_program(program);
    terminal_read(terminal, "No program offers its counters");
    program = start_program(&good);
    terminal_read(terminal, "hybrid, stage 2");
    ck_assert_int_eq(write(terminal, "q", 1), 1);
    ck_assert_int_eq(terminal_finish(terminal, child), 0);
    stop_program(program);
}
END_TEST
#endif

/* The library itself on the other side, until it is killed. */
START_TEST(a_real_program_is_shown)
{
    pid_t program;
    char text[64];

    shell(CAPUCHIN_COMMAND " model resnet50 --machine p100 --batch 8 -o t 2>/dev/null");
    program = fork();
    if (program == 0) {
        char trace[128];

        setenv("CAPUCHIN_TOP", "1", 1);
        snprintf(trace, sizeof(trace), "%s/t", folder);
        (void)!freopen("/dev/null", "w", stdout);
        execl(CAPUCHIN_COMMAND, "capuchin", "replay", trace, "-b", "60%", "--mode", "passive", "-n",
              "10000", (char *)NULL);
        _exit(127);
    }
    do {
        ck_assert_int_eq(waitpid(program, NULL, WNOHANG), 0);
        ck_assert_int_eq(run_top("--once"), 0);
    } while (strstr(output, "  link    out ") == NULL);
    snprintf(text, sizeof(text), "capuchin (process %ld), context ", (long)program);
    expect(text);
    expect(": sim, passive\n  iteration ");
    expect("  alive   parameter 97.");
    stop_program(program);
    ck_assert_int_eq(run_top("--once --json"), 0);
    expect("{\"programs\":[],\"rejected\":[],\"removed\":1}");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools/top");
    TCase *tests = tcase_create("top");

    tcase_add_checked_fixture(tests, setup, remove_folder);
    tcase_add_test(tests, the_table_has_known_values);
    tcase_add_test(tests, scripts_get_every_line);
    tcase_add_test(tests, a_context_without_an_iteration_is_shown);
    tcase_add_loop_test(tests, what_speaks_otherwise_is_rejected, 0,
                        sizeof(strange) / sizeof(strange[0]));
    tcase_add_test(tests, a_program_that_has_ended_leaves_nothing);
    tcase_add_test(tests, an_orphaned_socket_is_removed);
    tcase_add_test(tests, what_is_no_socket_stays);
    tcase_add_test(tests, a_folder_that_others_can_enter_is_rejected);
    tcase_add_test(tests, the_runtime_directory_is_the_default);
    tcase_add_test(tests, options_are_checked);
#if CAPUCHIN_HAVE_NCURSES
    tcase_add_test(tests, the_screen_has_known_values);
    tcase_add_test(tests, the_screen_follows_the_programs);
#endif
    tcase_add_test(tests, a_real_program_is_shown);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
