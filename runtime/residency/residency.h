/*
 * What leaves the device, and what is kept to come back.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_RESIDENCY_H
#define CAPU_RUNTIME_RESIDENCY_H

#include "runtime/context/agent.h"
#include "runtime/residency/departure.h"
#include "runtime/residency/uploads.h"
#include "runtime/residency/victims.h"
#include "runtime/strict/strict.h"

struct residency {
    /* What it works with. */
    struct failure *failure;
    struct agent *agent; /* which pins host memory */
    struct lanes *lanes;
    struct memory *memory;
    const struct settings *settings;
    const struct iteration_state *iteration;
    struct guided *guided;
    struct records *records;
    struct strict *strict;

    struct victims victims;
    struct departures departures;
    struct uploads uploads;
    struct allocation *parked; /* freed allocations that the guide keeps */
};

#endif
