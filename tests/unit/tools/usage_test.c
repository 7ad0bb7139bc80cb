/*
 * Every command with each of its options left out, given twice and given "-", without its input,
 * and with its output into a closed pipe: it does its work or says what is wrong, and never
 * crashes.
 */
#include "tests/unit/policy/fixture.h"
#include "tests/unit/tools/fixture.h"

#include <fcntl.h>
#include <signal.h>

enum { OPTIONS_MAX = 16, CLOSED_PIPE = 9 };

/* A command, with every option that it has. */
static const struct row {
    const char *name;
    const char *input;
    const char *options[OPTIONS_MAX]; /* NULL after the last */
} rows[] = {
    {"plan",
     "t",
     {"--budget=3100", "--effort=quick", "--fixed=1", "--host=10000", "--html=h", "--json",
      "--machine=m", "--output=o", "--page=50", "--place", "--progress", "--planner=lru",
      "--seconds=0.01"}},
    {"simulate", "t p", {"--html=h", "--json", "--machine=m", "--timeline=o"}},
    {"check", "t p", {NULL}},
    {"bound", "t", {"--budget=80%", "--json", "--machine=m"}},
    {"advise", "t", {"--budget=80%", "--effort=quick", "--json", "--machine=m", "--page=50"}},
    {"sweep",
     "t",
     {"--from=90%", "--html=h", "--machine=m", "--output=o.json", "--planners=lru", "--quick",
      "--step=10%", "--to=100%"}},
    {"model",
     "lstm",
     {"--attention=fused", "--batch=1", "--dtype=fp32", "--granularity=layer", "--list",
      "--machine=p100", "--output=o", "--sequence=4", "--update=end"}},
    {"model", "vgg16", {"--batch=1", "--image=64", "--machine=p100"}},
    {"maxbatch",
     "lstm",
     {"--attention=fused", "--budget=1GiB", "--dtype=fp32", "--effort=quick", "--granularity=layer",
      "--json", "--machine=p100", "--overhead=5%", "--planner=lru", "--sequence=4",
      "--update=end"}},
    {"maxbatch", "-p lru vgg16", {"--budget=8GiB", "--image=64", "--machine=p100"}},
    {"replay",
     "t",
     {"--budget=10MiB", "--effort=quick", "--host=1MiB", "--html=h", "--json", "--mode=guided",
      "--machine=m", "--iterations=3", "--page=4096", "--planner=lru", "--report=o",
      "--save-plan=q", "--save-trace=u", "--slab=2", "--timeline=l"}},
    {"explain", "r", {"--html=h", "--iteration=2", "--machine=m", "--plan=p", "--trace=t"}},
    {"kernels", "b", {"--all", "--json"}},
    {"run",
     "/bin/true",
     {"--budget=1GiB", "--driver=/bin/true", "--host-budget=1GiB", "--iteration-kernel=x",
      "--iterations=o", "--jit", "--mode=guided", "--operands=q", "--pretend=1GiB", "--recompute",
      "--report=u", "--strict", "--trust-parameters"}},
    {"run", "/bin/true", {"--driver=/bin/true", "--iteration-range=x"}},
    {"timeline", "r", {"--iteration=2", "--machine=m", "--output=o", "--plan=p", "--trace=t"}},
    {"timeline", "t", {"--machine=m", "--output=o", "--plan=p"}},
    {"top", "", {"--folder=f", "--interval=1", "--json", "--once"}},
    {"machines", "", {"--json"}},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static void setup(void)
{
    make_folder();
    write_file("t", CHAIN_TRACE);
    write_file("m", MACHINE_LINE);
    write_file("b",
               ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n");
    ck_assert_int_eq(run("replay t -b 10MiB --slab 2 -n 3 --timeline l --report r"), 0);
    ck_assert_int_eq(run("plan t -b 80% --planner lru -o p"), 0);
}

/* How a change of a command line treats one of its options. */
enum change { LEFT_OUT, TWICE, DASH };

/* Writes a command line in which the option with this index is changed. OPTIONS_MAX: none is. */
static void compose(const struct row *row, size_t changed, enum change change, const char *input,
                    char line[512])
{
    size_t used = (size_t)snprintf(line, 512, "%s", row->name);

    for (size_t i = 0; i < OPTIONS_MAX && row->options[i] != NULL; i++) {
        const char *option = row->options[i];
        const char *value = strchr(option, '=');
        int length = i == changed && change == DASH && value != NULL ? (int)(value - option) + 1
                                                                     : (int)strlen(option);

        int count = i != changed || change == DASH ? 1 : change == TWICE ? 2 : 0;

        while (count-- > 0) {
            used += (size_t)snprintf(line + used, 512 - used, " %.*s%s", length, option,
                                     length == (int)strlen(option) ? "" : "-");
        }
    }
    used += (size_t)snprintf(line + used, 512 - used, " %s", input);
    ck_assert_uint_lt(used, 512);
}

/* Runs a command line. `top` without --once would run until it is ended. */
static int check_line(const char *line, const char *output_to)
{
    char command[600];
    int code;

    snprintf(command, sizeof(command), "timeout 50 %s %s 2>errors %s </dev/null", CAPUCHIN_COMMAND,
             line, output_to);
    code = run_shell(command);
    shell("cat errors");
    ck_assert_msg(code == 0 || code == 2 || code == 3 || code == 4, "%s: exit code %d: %s", line,
                  code, output);
    ck_assert_msg(code == 0 || strstr(output, "capuchin") != NULL, "%s: exit code %d and \"%s\"",
                  line, code, output);
    return code;
}

START_TEST(no_option_is_missing_in_this_test)
{
    char command[256];
    char options[2048];
    size_t used = 0;

    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].name, rows[_i].name) == 0) {
            for (size_t k = 0; k < OPTIONS_MAX && rows[i].options[k] != NULL; k++) {
                used += (size_t)snprintf(options + used, sizeof(options) - used, "%s ",
                                         rows[i].options[k]);
            }
        }
    }
    ck_assert_uint_lt(used, sizeof(options));
    snprintf(command, sizeof(command),
             "%s %s --help | grep -oE '^ {2,6}(-., )?--[a-z-]+' | grep -o '[a-z-]*$'",
             CAPUCHIN_COMMAND, rows[_i].name);
    shell(command);
    for (char *name = strtok(output, "\n"); name != NULL; name = strtok(NULL, "\n")) {
        ck_assert_msg(strcmp(name, "--help") == 0 || strcmp(name, "--usage") == 0 ||
                          strstr(options, name) != NULL,
                      "%s %s is not tried", rows[_i].name, name);
    }
}
END_TEST

START_TEST(no_command_is_missing_in_this_test)
{
    shell(CAPUCHIN_COMMAND " --help | sed -n 's/^  \\([a-z]*\\)  .*/\\1/p'");
    ck_assert_ptr_nonnull(strstr(output, "machines\n"));
    for (char *name = strtok(output, "\n"); name != NULL; name = strtok(NULL, "\n")) {
        size_t i = 0;

        while (i < ROWS && strcmp(rows[i].name, name) != 0) {
            i++;
        }
        ck_assert_msg(i < ROWS, "%s is not tried", name);
    }
}
END_TEST

START_TEST(options_are_left_out_given_twice_and_given_a_dash)
{
    const struct row *row = &rows[_i];
    char line[512];

    compose(row, OPTIONS_MAX, LEFT_OUT, row->input, line);
    ck_assert_msg(check_line(line, ">out") == (strcmp(row->name, "run") == 0 && !HAS_SHIM ? 2 : 0),
                  "%s: %s", line, output);
    compose(row, OPTIONS_MAX, LEFT_OUT, "", line);
    check_line(line, ">out");
    compose(row, OPTIONS_MAX, LEFT_OUT, "-", line);
    check_line(line, ">out");
    for (size_t i = 0; i < OPTIONS_MAX && row->options[i] != NULL; i++) {
        for (enum change change = LEFT_OUT; change <= DASH; change++) {
            compose(row, i, change, row->input, line);
            check_line(line, ">out");
        }
    }
}
END_TEST

/* Whoever reads the output has gone: with SIGPIPE ignored, so that the command has to notice. */
START_TEST(a_closed_pipe_is_an_error)
{
    const struct row *row = &rows[_i];
    char line[512];
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[1], CLOSED_PIPE), CLOSED_PIPE);
    close(ends[0]);
    close(ends[1]);
    signal(SIGPIPE, SIG_IGN);
    compose(row, OPTIONS_MAX, LEFT_OUT, row->input, line);
    check_line(line, ">&9");
    for (size_t i = 0; i < OPTIONS_MAX && row->options[i] != NULL; i++) {
        if (strstr(row->options[i], "=o") != NULL || strcmp(row->options[i], "--json") == 0) {
            compose(row, i, LEFT_OUT, row->input, line);
            check_line(line, ">&9");
        }
    }
}
END_TEST

/* Without --output the results go to standard output. */
START_TEST(a_timeline_goes_to_standard_output)
{
    RUN_COMMANDS({"timeline r -o o && " CAPUCHIN_COMMAND " timeline r | cmp - o", 0, {""}},
                 {"timeline r -o - | cmp - o", 0, {""}},
                 {"timeline t --plan p -o o && " CAPUCHIN_COMMAND " timeline t --plan p | cmp - o",
                  0,
                  {""}});
}
END_TEST

/* Its memory is not all of the machine's. */
START_TEST(an_endless_input_is_rejected)
{
    RUN_COMMANDS({"explain /dev/zero", 2, {"/dev/zero:1: the line is too long"}},
                 {"explain r /dev/zero", 2, {"/dev/zero:1: the line is too long"}},
                 {"timeline /dev/zero", 2, {"/dev/zero: its first line is neither"}},
                 {"kernels /dev/zero", 2, {"/dev/zero: not a regular file"}});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools/usage");
    TCase *tests = tcase_create("usage");

    tcase_add_checked_fixture(tests, setup, remove_folder);
    tcase_add_test(tests, no_command_is_missing_in_this_test);
    tcase_add_loop_test(tests, no_option_is_missing_in_this_test, 0, ROWS);
    tcase_add_loop_test(tests, options_are_left_out_given_twice_and_given_a_dash, 0, ROWS);
    tcase_add_loop_test(tests, a_closed_pipe_is_an_error, 0, ROWS);
    tcase_add_test(tests, a_timeline_goes_to_standard_output);
    tcase_add_test(tests, an_endless_input_is_rejected);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
