/*
 * A device whose work is late: before copies, fills, runs and recordings of events, the stream
 * idles for a random time, drawn from a seed. Work that is properly ordered is not affected; code
 * that was right only by luck fails. On sim the time passes on the virtual clock. Owned by the
 * device's calling thread.
 */
#ifndef CAPU_TESTS_SUPPORT_ADAPTOR_DELAY_H
#define CAPU_TESTS_SUPPORT_ADAPTOR_DELAY_H

#include "device/device.h"

struct adaptor_delay_plan {
    uint64_t seed;
    uint64_t longest_ns; /* below 2^32; each delay is drawn from 0 .. longest */
    uint32_t one_in;     /* one call in this many is delayed; 0: every call */
    uint64_t slots;      /* which calls: a set of bits 1 << slot; 0: all that can be delayed */
    uint64_t quiet;      /* how many such calls come first that are not delayed */
};

/* Takes `inner`. NO_HOST_MEMORY. */
capu_status adaptor_delay_create(struct device *inner, const struct adaptor_delay_plan *plan,
                                 struct device **device);

#endif
