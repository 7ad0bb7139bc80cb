/*
 * What leaves the device, and what is kept to come back.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_RESIDENCY_H
#define CAPU_RUNTIME_RESIDENCY_H

#include "runtime/residency/departure.h"
#include "runtime/residency/uploads.h"
#include "runtime/residency/victims.h"

struct residency {
    struct victims victims;
    struct departures departures;
    struct uploads uploads;
    struct allocation *parked; /* freed allocations that the guide keeps */
};

#endif
