/*
 * The report of an iteration with all its counters: as the library keeps it, and as its line in the
 * report file has it (docs/report.md).
 */
#ifndef CAPU_POLICY_REPORT_H
#define CAPU_POLICY_REPORT_H

#include "capuchin/report.h"

#include <stddef.h>
#include <stdint.h>

/* X(name, unit, text), as CAPU_REPORT_COUNTERS. One list generates fields and JSON keys. */
#define REPORT_COUNTERS(X) CAPU_REPORT_COUNTERS(X)

/* All but the counters is as in capu_report. */
struct report {
    uint32_t mode;
    const char *label;
    const char *floor_op;
    const capu_eviction *evictions;
    size_t eviction_count;
    const char *plan_error;
    const capu_stall *stalls;
    size_t stall_count;
#define REPORT_FIELD(name, unit, text) uint64_t name;
    REPORT_COUNTERS(REPORT_FIELD)
#undef REPORT_FIELD
};

#endif
