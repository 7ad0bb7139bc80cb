/*
 * The links between device and host, as fast as they are with both directions busy: what plans are
 * made for, since copies out and in run beside each other.
 */
#ifndef CAPU_RUNTIME_LINKS_H
#define CAPU_RUNTIME_LINKS_H

#include "capuchin/context.h"
#include "capuchin/status.h"

#include <stdint.h>

struct links {
    uint64_t d2h_bytes_per_s;
    uint64_t h2d_bytes_per_s;
    uint64_t latency_ns; /* of a copy, whatever its size */
};

/* What the device says of its links; where it does not know, measured, which takes milliseconds and
   waits. DEVICE_FAILED, NO_HOST_MEMORY, OVER_BUDGET. */
capu_status links_measure(capu_context *context, struct links *links);

#endif
