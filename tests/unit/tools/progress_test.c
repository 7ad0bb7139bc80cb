/* The line of progress, on a pseudo terminal as users see it, and what SIGINT does to long work. */
#include "tests/unit/tools/fixture.h"
#include "tests/unit/tools/terminal.h"

#include "tools/output/progress.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* Longer than the time within which the line is not drawn again. */
static void let_time_pass(void)
{
    struct timespec time = {.tv_nsec = 300000000};

    while (nanosleep(&time, &time) != 0) {
    }
}

START_TEST(the_line_says_how_far_it_is)
{
    int terminal;
    pid_t child = terminal_start(&terminal, 100);

    if (child == 0) {
        progress_begin("working", 4, 3600.0);
        (void)progress_should_stop(NULL);
        progress_note("found %d", 7);
        progress_step();
        let_time_pass();
        (void)progress_should_stop(NULL);
        progress_clear();
        printf("result\n");
        fflush(stdout);
        _exit(progress_end() ? 1 : 0);
    }
    ck_assert_int_eq(terminal_finish(terminal, child), 0);
    terminal_expect("\rworking: 0 of 4, ");
    terminal_expect("working: 1 of 4, ");
    terminal_expect(", about ");
    terminal_expect(" left, at most ");
    terminal_expect(" left (found 7)");
    /* It is blanked before the result, which begins in the first column. */
    terminal_expect("  \rresult\r\n");
}
END_TEST

/* A line that reaches the last column would stay on the screen. */
START_TEST(the_line_fits_the_terminal)
{
    int terminal;
    pid_t child = terminal_start(&terminal, 20);

    if (child == 0) {
        progress_begin("a long name of a piece of work", 0, 0.0);
        (void)progress_should_stop(NULL);
        _exit(progress_end() ? 1 : 0);
    }
    ck_assert_int_eq(terminal_finish(terminal, child), 0);
    ck_assert_str_eq(screen, "\ra long name of a pi\r                   \r");
}
END_TEST

START_TEST(the_second_signal_ends_the_process)
{
    int terminal;
    pid_t child = terminal_start(&terminal, 80);
    int status;

    if (child == 0) {
        progress_begin("deaf work", 0, 0.0);
        for (;;) {
            (void)progress_should_stop(NULL);
        }
    }
    terminal_read(terminal, "deaf work: 0 s");
    ck_assert_int_eq(kill(child, SIGINT), 0);
    terminal_read(terminal, "deaf work: stopping");
    ck_assert_int_eq(kill(child, SIGINT), 0);
    status = terminal_finish(terminal, child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}
END_TEST

/* As nohup and shells in the background have it. */
START_TEST(an_ignored_signal_stays_ignored)
{
    ck_assert_ptr_ne(signal(SIGINT, SIG_IGN), SIG_ERR);
    progress_begin("work", 0, 0.0);
    ck_assert_int_eq(raise(SIGINT), 0);
    ck_assert(!progress_should_stop(NULL));
    ck_assert(!progress_end());
    ck_assert_ptr_eq(signal(SIGINT, SIG_DFL), SIG_IGN);
}
END_TEST

static void note_signal(int number)
{
    (void)number;
}

START_TEST(the_former_handler_comes_back)
{
    ck_assert_ptr_ne(signal(SIGINT, note_signal), SIG_ERR);
    progress_begin("work", 0, 0.0);
    ck_assert(!progress_end());
    ck_assert_ptr_eq(signal(SIGINT, SIG_DFL), note_signal);
    progress_begin("work", 0, 0.0);
    ck_assert_int_eq(raise(SIGINT), 0);
    ck_assert(progress_should_stop(NULL));
    ck_assert(progress_end());
}
END_TEST

/* Work that takes minutes, what to wait for before the SIGINT, and what is printed then. */
static const struct {
    const char *arguments;
    const char *sign;
    const char *results[3];
} stopped[] = {
    {"plan t -b 60% --effort best -o p",
     " s, about ",
     {"hybrid: ", "uses ", "stopped: this is the best plan so far"}},
    {"plan t -b 60% --effort best --seconds 3600 -o p",
     " left (best so far ",
     {"hybrid: ", "uses ", "stopped: this is the best plan so far"}},
    {"sweep t --planners hybrid --from 40 --step 1",
     ", about ",
     {"budget         40%", "bound ", "stopped: the budgets above "}},
    {"maxbatch resnet50 --machine p100 --effort best",
     " % over the ideal)",
     {"resnet50 on ", "without a plan: batch ", "stopped: a larger batch may be possible"}},
    {"advise t -b 60% --effort best",
     "advising: 0 of 8, ",
     {"now: ", " per iteration in ", "stopped: not all changes were tried"}},
    {"replay t -b 60% --mode passive -n 10000 --report r",
     " of 10000, ",
     {"iteration  mode ", "passive ", "stopped after "}},
};

/* Ctrl-C on the terminal, so that the signal takes the same path as a user's. */
START_TEST(a_signal_stops_work_with_its_result)
{
    const char *const *results = stopped[_i].results;
    int terminal;
    pid_t child = terminal_start(&terminal, 120);
    int status;

    if (child == 0) {
        char command[512];

        snprintf(command, sizeof(command), "cd %s && exec %s %s", folder, CAPUCHIN_COMMAND,
                 stopped[_i].arguments);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    terminal_read(terminal, stopped[_i].sign);
    ck_assert_int_eq(write(terminal, "\x03", 1), 1);
    status = terminal_finish(terminal, child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STOPPED, "%s: status %d: %s",
                  stopped[_i].arguments, status, screen);
    for (size_t i = 0; i < sizeof(stopped[_i].results) / sizeof(*results); i++) {
        terminal_expect(results[i]);
    }
    if (strstr(stopped[_i].arguments, "-o p") != NULL) {
        ck_assert_int_eq(run("check t p"), 0);
    }
}
END_TEST

#ifdef BENCH
/* What it has measured by then stays on the screen. */
START_TEST(a_signal_stops_a_bench_with_its_results)
{
    int terminal;
    pid_t child = terminal_start(&terminal, 120);
    int status;

    if (child == 0) {
        execl(BENCH, "bench", "default", "100000", (char *)NULL);
        _exit(127);
    }
    terminal_read(terminal, ", about ");
    ck_assert_int_eq(write(terminal, "\x03", 1), 1);
    status = terminal_finish(terminal, child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STOPPED);
    terminal_expect("\r| 98 | ");
    ck_assert_ptr_null(strstr(screen, "| 41106 | "));
}
END_TEST
#endif

/* Piped, the same commands say nothing of their progress. */
START_TEST(a_pipe_gets_no_progress)
{
    shell(CAPUCHIN_COMMAND " plan t -b 60% --effort quick 2>&1 >/dev/null");
    ck_assert_str_eq(output, "");
    shell(CAPUCHIN_COMMAND " sweep t --planners lru 2>&1 >/dev/null");
    ck_assert_str_eq(output, "");
    shell(CAPUCHIN_COMMAND " replay t -b 60% --mode passive 2>&1 >/dev/null");
    ck_assert_str_eq(output, "");
    shell(CAPUCHIN_COMMAND " maxbatch vgg16 --machine p100 --planner lru 2>&1 >/dev/null");
    ck_assert_str_eq(output, "");
    shell(CAPUCHIN_COMMAND " advise t -b 60% 2>&1 >/dev/null");
    ck_assert_str_eq(output, "");
}
END_TEST

static void setup(void)
{
    make_folder();
    shell(CAPUCHIN_COMMAND " model resnet50 --machine p100 --batch 32 -o t 2>/dev/null");
}

int main(void)
{
    Suite *suite = suite_create("tools/progress");
    TCase *line = tcase_create("line");
    TCase *commands = tcase_create("commands");

    tcase_add_test(line, the_line_says_how_far_it_is);
    tcase_add_test(line, the_line_fits_the_terminal);
    tcase_add_test(line, the_second_signal_ends_the_process);
    tcase_add_test(line, an_ignored_signal_stays_ignored);
    tcase_add_test(line, the_former_handler_comes_back);
    suite_add_tcase(suite, line);
    tcase_add_checked_fixture(commands, setup, remove_folder);
    tcase_add_loop_test(commands, a_signal_stops_work_with_its_result, 0,
                        sizeof(stopped) / sizeof(stopped[0]));
#ifdef BENCH
    tcase_add_test(commands, a_signal_stops_a_bench_with_its_results);
#endif
    tcase_add_test(commands, a_pipe_gets_no_progress);
    suite_add_tcase(suite, commands);
    return suite_run(suite);
}
