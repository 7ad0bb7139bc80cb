/*
 * How plans are made: the planner, and what is remembered per label.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_PLANS_H
#define CAPU_RUNTIME_PLANS_H

#include "runtime/follow/following.h"
#include "runtime/plan/label_records.h"

struct plan_keeper;

struct plans {
    /* What it works with. */
    const struct settings *settings;
    struct failure *failure;
    struct agent *agent; /* whose threads make plans */
    struct lanes *lanes;
    struct memory *memory;
    const struct iteration_state *iteration;
    struct guided *guided;
    struct records *records;
    struct residency *residency;
    struct following *following;

    struct plan_keeper *keeper; /* NULL: not in guided mode */
    struct label_records labels;
    struct label_record *label; /* of the iteration under way; NULL: none is */
    bool places_nothing;        /* for tests: plans have no places, also where there is room */
};

#endif
