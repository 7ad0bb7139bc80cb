/* Runs the capuchin command in a temporary folder, for the tests in this folder. */
#ifndef CAPU_TESTS_UNIT_TOOLS_FIXTURE_H
#define CAPU_TESTS_UNIT_TOOLS_FIXTURE_H

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/capuchin-command-XXXXXX";
static char output[8192];

static inline void write_file(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* Runs a shell command in the folder, returns its exit code, and leaves what it prints in
   `output`. */
static inline int run_shell(const char *text)
{
    char command[640];
    FILE *pipe;
    size_t length;

    snprintf(command, sizeof(command), "cd %s && %s", folder, text);
    pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    length = fread(output, 1, sizeof(output) - 1, pipe);
    output[length] = '\0';
    return WEXITSTATUS(pclose(pipe));
}

/* The same, and it must succeed. */
static inline void shell(const char *text)
{
    ck_assert_msg(run_shell(text) == 0, "%s: %s", text, output);
}

/* Runs capuchin in the folder, returns its exit code, and leaves stdout and stderr in `output`. */
static inline int run(const char *arguments)
{
    char command[512];

    snprintf(command, sizeof(command), "%s 2>&1 %s", CAPUCHIN_COMMAND, arguments);
    return run_shell(command);
}

static inline void expect(const char *text)
{
    ck_assert_msg(strstr(output, text) != NULL, "\"%s\" is not in \"%s\"", text, output);
}

/* A call of capuchin and its result. */
struct command {
    const char *arguments;
    int exit_code;
    const char *texts[24]; /* in its output; NULL after the last, and "" if any output will do */
};

/* Runs commands in their order, up to one without arguments. The output of the last one stays. */
static inline void run_commands(const struct command *commands)
{
    for (const struct command *command = commands; command->arguments != NULL; command++) {
        int code = run(command->arguments);

        ck_assert_msg(code == command->exit_code, "capuchin %s: exit code %d, not %d: %s",
                      command->arguments, code, command->exit_code, output);
        for (const char *const *text = command->texts; *text != NULL; text++) {
            ck_assert_msg(strstr(output, *text) != NULL, "capuchin %s: \"%s\" is not in \"%s\"",
                          command->arguments, *text, output);
        }
    }
}

/* Rows {arguments, exit code, {texts in the output}}. */
#define RUN_COMMANDS(...) run_commands((const struct command[]){__VA_ARGS__, {0}})

static inline void make_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void remove_folder(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

#endif
