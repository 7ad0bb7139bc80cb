/*
 * How plans are made: the planner, and what is remembered per label.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_PLANS_H
#define CAPU_RUNTIME_PLANS_H

#include "runtime/plan/label_records.h"

struct plan_keeper;

struct plans {
    struct plan_keeper *keeper; /* NULL: not in guided mode */
    struct label_records labels;
    struct label_record *label; /* of the iteration under way; NULL: none is */
    bool places_nothing;        /* for tests: plans have no places, also where there is room */
};

#endif
