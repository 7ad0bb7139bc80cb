/* Progress on standard output. */
#include "examples/common/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* How often the line on a terminal is rewritten. */
#define REDRAW_S 0.1

/* About how many plain lines a run prints. */
#define PLAIN_LINES 20u

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void progress_begin(struct progress *progress, uint32_t steps, const char *unit)
{
    *progress = (struct progress){
        .unit = unit,
        .steps = steps,
        .begin_s = now_s(),
        .is_terminal = isatty(STDOUT_FILENO) != 0,
    };
}

static bool is_line_due(const struct progress *progress, uint32_t step, double now)
{
    uint32_t every = progress->steps / PLAIN_LINES + 1;

    if (step == progress->steps) {
        return true;
    }
    if (progress->is_terminal) {
        return now - progress->shown_s >= REDRAW_S;
    }
    return step == 1 || step % every == 0;
}

void progress_step(struct progress *progress, uint32_t step, float loss, uint64_t units)
{
    double now = now_s();
    double elapsed_s = now - progress->begin_s;
    double left_s = elapsed_s / step * (progress->steps - step);

    progress->done += units;
    if (progress->is_silent || !is_line_due(progress, step, now)) {
        return;
    }
    progress->shown_s = now;
    printf("%sstep %u/%u  loss %.4f  %.0f %s/s  %.0f s left", progress->is_terminal ? "\r" : "",
           step, progress->steps, (double)loss, (double)progress->done / (elapsed_s + 1e-9),
           progress->unit, left_s);
    if (progress->is_terminal) {
        fputs("\x1b[K", stdout);
    } else {
        putchar('\n');
    }
    progress->is_line_open = progress->is_terminal;
    fflush(stdout);
}

void progress_break(struct progress *progress)
{
    if (progress->is_line_open) {
        putchar('\n');
        progress->is_line_open = false;
    }
}

void progress_end(struct progress *progress)
{
    double elapsed_s = now_s() - progress->begin_s;

    progress_break(progress);
    if (progress->is_silent) {
        return;
    }
    printf("trained %u steps in %.1f s, %.0f %s/s\n", progress->steps, elapsed_s,
           (double)progress->done / (elapsed_s + 1e-9), progress->unit);
}
