/* A pseudo terminal that a child runs on, and what it has received. For the tests in this folder.
 */
#ifndef CAPU_TESTS_UNIT_TOOLS_TERMINAL_H
#define CAPU_TESTS_UNIT_TOOLS_TERMINAL_H

#include "tests/support/suite.h"

#include <errno.h>
#include <pty.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char screen[65536];
static size_t screen_bytes;

/* Runs a child on a terminal with so many columns. In the child it returns 0. */
static inline pid_t terminal_start(int *terminal, unsigned short columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    pid_t child = forkpty(terminal, NULL, NULL, &size);

    ck_assert_int_ge(child, 0);
    screen_bytes = 0;
    screen[0] = '\0';
    return child;
}

/* Reads until the text has appeared; NULL: to the end. */
static inline void terminal_read(int terminal, const char *text)
{
    while (text == NULL || strstr(screen, text) == NULL) {
        ssize_t got;

        if (sizeof(screen) - 1 - screen_bytes < 4096) { /* keep what a text may begin with */
            memmove(screen, screen + screen_bytes - 4096, 4096);
            screen_bytes = 4096;
        }
        got = read(terminal, screen + screen_bytes, sizeof(screen) - 1 - screen_bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) { /* a terminal that no process has open is an error on Linux */
            ck_assert_msg(text == NULL, "\"%s\" is not in \"%s\"", text, screen);
            return;
        }
        screen_bytes += (size_t)got;
        screen[screen_bytes] = '\0';
    }
}

/* Reads to the end; the child's status as waitpid gives it. */
static inline int terminal_finish(int terminal, pid_t child)
{
    int status;

    terminal_read(terminal, NULL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(close(terminal), 0);
    return status;
}

static inline void terminal_expect(const char *text)
{
    ck_assert_msg(strstr(screen, text) != NULL, "\"%s\" is not in \"%s\"", text, screen);
}

#endif
