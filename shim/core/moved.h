/*
 * What was copied of each allocation of the program, for the report. Allocations that have had the
 * same number one after the other are counted together.
 *
 * Guarded by the core's lock; at exit by nothing, as all of the report.
 */
#ifndef CAPU_SHIM_MOVED_H
#define CAPU_SHIM_MOVED_H

#include "shim/core/alloc.h"

#include <capuchin/capuchin.h>

struct moved {
    uint64_t ordinal;
    uint64_t count;   /* allocations that have had it */
    uint64_t address; /* of the last one */
    uint64_t bytes;   /* of the largest one */
    uint64_t out_bytes, back_bytes;
};

/* Notes what was copied of an allocation, if there will be a report. Once for each: before it is
   freed, or at the end. */
void moved_note(capu_context *context, const struct allocation *allocation);

/* Sorts all that were noted by what was copied of them, the most first, and returns how many have
   been copied at all. For the end: no more can be noted. */
size_t moved_sort(const struct moved **list);

#endif
