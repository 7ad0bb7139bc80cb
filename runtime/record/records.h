/*
 * What is recorded of iterations, and between them.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_RECORDS_H
#define CAPU_RUNTIME_RECORDS_H

#include "runtime/guide/guided.h"
#include "runtime/record/live.h"
#include "runtime/record/page_figures.h"
#include "runtime/record/timeline_log.h"
#include "runtime/record/tracker.h"
#include "runtime/record/traffic.h"

struct records {
    /* What it works with. */
    struct failure *failure;
    struct agent *agent; /* which writes reports and traces */
    struct lanes *lanes;
    struct memory *memory;
    const struct settings *settings;
    const struct iteration_state *iteration;
    const struct guided *guided;

    struct tracker tracker;
    struct timeline_logs timeline_logs;
    struct copy_times copy_times;
    struct traffic traffic;
    struct outside outside;
    struct live *live;   /* what `capuchin top` is shown; NULL: nothing */
    uint64_t install_ns; /* spent on making plans active since the last iteration began */
};

#endif
