/* One line of progress, and the handler of SIGINT. */
#include "tools/output/progress.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 256
#define COLUMNS_DEFAULT 80
#define DRAW_EVERY_S 0.2 /* more often is not readable */

static struct {
    const char *what;
    uint64_t steps;
    uint64_t done;
    double limit_s;
    double begin_s;
    double end_s; /* from progress_set_left; 0: not known */
    double drawn_s;
    int drawn_columns; /* 0: no line is on the terminal */
    char note[LINE_BYTES];
    struct sigaction former;
} progress;

/* Set by the handler; apart from the struct, which the handler must not touch. */
static volatile sig_atomic_t is_stopped;

static double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void stop_on_signal(int signal)
{
    (void)signal;
    is_stopped = 1;
}

void progress_begin(const char *what, uint64_t steps, double limit_s)
{
    /* After the first SIGINT the handler is gone, so the second one ends the process. */
    struct sigaction action = {.sa_handler = stop_on_signal, .sa_flags = SA_RESETHAND | SA_RESTART};

    is_stopped = 0;
    progress.what = isatty(STDERR_FILENO) == 1 ? what : NULL;
    progress.steps = steps;
    progress.done = 0;
    progress.end_s = 0.0;
    progress.limit_s = limit_s;
    progress.begin_s = now_s();
    progress.drawn_columns = 0;
    progress.note[0] = '\0';
    (void)sigaction(SIGINT, NULL, &progress.former);
    if (progress.former.sa_handler != SIG_IGN) {
        (void)sigaction(SIGINT, &action, NULL);
    }
}

bool progress_is_shown(void)
{
    return progress.what != NULL;
}

double progress_seconds(void)
{
    return now_s() - progress.begin_s;
}

void progress_set_left(double seconds)
{
    progress.end_s = progress_seconds() + seconds;
}

void progress_note(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(progress.note, sizeof(progress.note), format, arguments);
    va_end(arguments);
}

static const char *duration(double seconds, char text[32])
{
    uint64_t whole = seconds > 0.0 ? (uint64_t)(seconds + 0.5) : 0;

    if (whole < 60) {
        snprintf(text, 32, "%" PRIu64 " s", whole);
    } else if (whole < 3600) {
        snprintf(text, 32, "%" PRIu64 " min %02" PRIu64 " s", whole / 60, whole % 60);
    } else {
        snprintf(text, 32, "%" PRIu64 " h %02" PRIu64 " min", whole / 3600, whole / 60 % 60);
    }
    return text;
}

static void append_text(char line[LINE_BYTES], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What does not fit is cut off. */
static void append_text(char line[LINE_BYTES], const char *format, ...)
{
    size_t used = strlen(line);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line + used, LINE_BYTES - used, format, arguments);
    va_end(arguments);
}

/* Steps need not take equally long, so the time left is an estimate; a limit is not. */
static void compose_line(char line[LINE_BYTES], double passed)
{
    char text[32];

    line[0] = '\0';
    append_text(line, "%s: ", progress.what);
    if (is_stopped != 0) {
        append_text(line, "stopping");
        return;
    }
    if (progress.steps > 0) {
        append_text(line, "%" PRIu64 " of %" PRIu64 ", ", progress.done, progress.steps);
    }
    append_text(line, "%s", duration(passed, text));
    if (progress.done > 0 && progress.done < progress.steps) {
        double left = passed / (double)progress.done * (double)(progress.steps - progress.done);

        append_text(line, ", about %s left", duration(left, text));
    }
    if (progress.end_s > passed) {
        append_text(line, ", about %s left", duration(progress.end_s - passed, text));
    }
    if (progress.limit_s > 0.0) {
        append_text(line, ", at most %s left", duration(progress.limit_s - passed, text));
    }
    if (progress.note[0] != '\0') {
        append_text(line, " (%s)", progress.note);
    }
}

/* Blanks instead of an escape sequence: every terminal knows them. */
void progress_clear(void)
{
    if (progress.drawn_columns > 0) {
        fprintf(stderr, "\r%*s\r", progress.drawn_columns, "");
        (void)fflush(stderr);
        progress.drawn_columns = 0;
    }
}

static void draw_line(double passed)
{
    struct winsize size;
    char line[LINE_BYTES];
    int columns = COLUMNS_DEFAULT;
    int former = progress.drawn_columns;
    int length;

    compose_line(line, passed);
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) {
        columns = size.ws_col;
    }
    /* A line that reached the last column would go on in the next row, where it stays. */
    length = (int)strlen(line) < columns - 1 ? (int)strlen(line) : columns - 1;
    former = former < columns - 1 ? former : columns - 1;
    (void)fflush(stdout);
    fprintf(stderr, "\r%.*s%*s", length, line, former > length ? former - length : 0, "");
    (void)fflush(stderr);
    progress.drawn_columns = former > length ? former : length;
    progress.drawn_s = passed;
}

void progress_steps(uint64_t count)
{
    progress.done += count;
}

void progress_step(void)
{
    progress_steps(1);
}

bool progress_should_stop(void *unused)
{
    (void)unused;
    if (progress.what != NULL) {
        double passed = progress_seconds();

        if (progress.drawn_columns == 0 || passed - progress.drawn_s >= DRAW_EVERY_S) {
            draw_line(passed);
        }
    }
    return is_stopped != 0;
}

bool progress_end(void)
{
    progress_clear();
    progress.what = NULL;
    if (is_stopped == 0) {
        (void)sigaction(SIGINT, &progress.former, NULL);
    }
    return is_stopped != 0;
}
