/* Clock, resident memory, statistics, options and checks of the runtime benches. */
#include "bench/runtime/bench.h"

#include "runtime/api/context.h"
#include "tools/output/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

uint64_t bench_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    uint64_t kilobytes = 0;

    bench_expect(file != NULL, "/proc/self/status");
    while (fgets(line, sizeof(line), file) != NULL &&
           sscanf(line, "RssAnon: %" SCNu64, &kilobytes) != 1) {
    }
    fclose(file);
    bench_expect(kilobytes > 0, "RssAnon in /proc/self/status");
    return kilobytes * 1024;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return a < b ? -1 : a > b;
}

struct bench_numbers bench_summary(double *values, size_t count)
{
    struct bench_numbers numbers;

    qsort(values, count, sizeof(*values), by_value);
    numbers.minimum = values[0];
    numbers.median =
        count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    return numbers;
}

bool bench_wants_json(int count, char **arguments, const char *usage)
{
    bool wants_json = false;

    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--json") == 0) {
            wants_json = true;
        } else {
            bool wants_help = strcmp(arguments[i], "--help") == 0;

            fprintf(wants_help ? stdout : stderr, "%s", usage);
            exit(wants_help ? EXIT_SUCCESS : EXIT_FAILURE);
        }
    }
    return wants_json;
}

void bench_check(capu_context *context, capu_status status, const char *call)
{
    if (status != CAPU_OK) {
        progress_clear();
        fprintf(stderr, "%s: %s: %s\n", call, capu_status_name(status), capu_last_error(context));
        exit(EXIT_FAILURE);
    }
}

struct report bench_report(capu_context *context)
{
    capu_report report = CAPU_REPORT_INIT;

    BENCH_OK(context, capu_report_get(context, &report));
    return context->records.tracker.newest->report;
}

void bench_expect(bool holds, const char *what)
{
    if (!holds) {
        progress_clear();
        fprintf(stderr, "wrong result: %s\n", what);
        exit(EXIT_FAILURE);
    }
}
