/*
 * A device whose work comes late: before copies, fills, runs and recordings of events it lets the
 * stream idle for a random time, from a seed. What is ordered stays so; what was right only by luck
 * shows. On sim the time passes on the virtual clock. Owned by the device's calling thread.
 */
#ifndef CAPU_DEVICE_ADAPTOR_DELAY_H
#define CAPU_DEVICE_ADAPTOR_DELAY_H

#include "device/device.h"

struct adaptor_delay_plan {
    uint64_t seed;
    uint64_t longest_ns; /* below 2^32; each delay is drawn from 0 .. longest */
    uint32_t one_in;     /* one call in so many is delayed; 0: every one */
    uint64_t slots;      /* bits 1 << slot of the calls that are; 0: of all kinds */
    uint64_t quiet;      /* so many of those come first that are not */
};

/* Takes `inner`. NO_HOST_MEMORY. */
capu_status adaptor_delay_create(struct device *inner, const struct adaptor_delay_plan *plan,
                                 struct device **device);

#endif
