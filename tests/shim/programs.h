/* Running a program and reading what it says. */
#ifndef CAPU_TESTS_SHIM_PROGRAMS_H
#define CAPU_TESTS_SHIM_PROGRAMS_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { OUTPUT_BYTES = 65536 };

/* A sanitizer's runtime wants to be the first library, which a preloaded one is. */
#define SANITIZERS "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 "

/* Over the driver of tests/ptx, whose device has 64 MiB. */
#define ALONE \
    SANITIZERS "LD_LIBRARY_PATH=" DRIVER_FOLDER " PTX_DRIVER_MEMORY=64MiB PTX_DRIVER_FOREIGN=1 "

/* Runs a shell command; stores what it prints on both outputs and returns its exit code, or 128
   plus the signal that ended it. */
static inline int run_command(const char *command, char output[OUTPUT_BYTES])
{
    char line[8192];
    size_t used;
    FILE *pipe;
    int status;

    ck_assert_int_lt(snprintf(line, sizeof(line), "{ %s; } 2>&1", command), (int)sizeof(line));
    pipe = popen(line, "r");
    ck_assert_ptr_nonnull(pipe);
    used = fread(output, 1, OUTPUT_BYTES - 1, pipe);
    output[used] = '\0';
    status = pclose(pipe);
    ck_assert_int_ne(status, -1);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void check_contains(const char *output, const char *text)
{
    ck_assert_msg(strstr(output, text) != NULL, "no \"%s\" in:\n%s", text, output);
}

/* Runs a command that must end with the code and print the text, among other lines. */
static inline void check_run(const char *command, int code, const char *text,
                             char output[OUTPUT_BYTES])
{
    int status = run_command(command, output);

    ck_assert_msg(status == code, "%s: %d\n%s", command, status, output);
    check_contains(output, text);
}

#endif
