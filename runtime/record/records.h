/*
 * What is recorded of iterations, and between them.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_RECORDS_H
#define CAPU_RUNTIME_RECORDS_H

#include "runtime/record/copy_times.h"
#include "runtime/record/live.h"
#include "runtime/record/outside.h"
#include "runtime/record/timeline_log.h"
#include "runtime/record/tracker.h"
#include "runtime/record/traffic.h"

struct records {
    struct tracker tracker;
    struct timeline_logs timeline_logs;
    struct copy_times copy_times;
    struct traffic traffic;
    struct outside outside;
    struct live *live;   /* what `capuchin top` is shown; NULL: nothing */
    uint64_t install_ns; /* spent on making plans active since the last iteration began */
};

#endif
