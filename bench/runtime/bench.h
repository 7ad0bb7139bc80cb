/* What the runtime benches share: a clock, resident memory, statistics of repeated runs, and ending
   with a reason. */
#ifndef CAPU_BENCH_SUPPORT_BENCH_H
#define CAPU_BENCH_SUPPORT_BENCH_H

#include "capuchin/capuchin.h"
#include "policy/format/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_numbers {
    double median;
    double minimum;
};

/* Seconds of a monotonic clock. */
double bench_now(void);

/* Anonymous resident memory of the process. */
uint64_t bench_resident_bytes(void);

/* Computes median and minimum, and sorts the values. Pre: count > 0. */
struct bench_numbers bench_summary(double *values, size_t count);

/* Whether the program was called with --json. Any other argument prints the usage and ends it. */
bool bench_wants_json(int count, char **arguments, const char *usage);

/* Ends the program with the error of the context if the call failed. */
void bench_check(capu_context *context, capu_status status, const char *call);

#define BENCH_OK(context_, call_) bench_check((context_), (call_), #call_)

/* The report of the newest finished iteration, with all counters; or ends the program. */
struct report bench_report(capu_context *context);

/* Ends the program if a result is wrong, so that no time is printed for it. */
void bench_expect(bool holds, const char *what);

#endif
