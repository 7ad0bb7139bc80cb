/*
 * A device that checks the order of work: whether each access to memory certainly comes after those
 * that it must not overtake, however long anything takes.
 *
 * Each stream, and the host, has a clock with one component per stream. Work that is enqueued, an
 * event that is recorded, a stream that follows it and a host that waits for it pass these clocks
 * on, as in race detectors for threads (FastTrack, PLDI 2009). Two accesses to one page of device
 * memory, or to the same bytes of host memory, of which one writes, must be ordered by them. Memory
 * that is unmapped or freed must not be in use any more. So a wait that is missing is found the
 * first time that the program could go wrong, also if it does not.
 *
 * Accesses by copies and fills are seen; those of run functions and of the host are what the test
 * says. The host's writes to memory that is then uploaded are seen, too: a copy in on a stream of
 * ops is an upload, and its bytes show whether they are new. Device memory is followed by pages.
 * Host memory is followed by units of 64 bytes: the first and the last of each access and one in 4
 * KiB of those between, so an overlap of less may be missed. Once the device has failed, nothing is
 * checked.
 */
#ifndef CAPU_TESTS_SUPPORT_ADAPTOR_ORDER_H
#define CAPU_TESTS_SUPPORT_ADAPTOR_ORDER_H

#include "device/device.h"

struct adaptor_order_range {
    const void *address;
    uint64_t bytes;
    bool is_written;
};

struct adaptor_order_plan {
    /* What a run function touches: fills in at most `most` ranges and returns how many. NULL:
       nothing is known. */
    size_t (*ranges)(const struct device_work *work, struct adaptor_order_range *ranges,
                     size_t most);
    /* The host never learns that work has completed unless it has waited: event_query is NOT_READY
       until then. So nothing is in order by luck. */
    bool is_late;
};

/* Takes `inner`, which must be a device and not an adaptor that adds work. NO_HOST_MEMORY. */
capu_status adaptor_order_create(struct device *inner, const struct adaptor_order_plan *plan,
                                 struct device **device);

/* The host touches device memory. */
void adaptor_order_touch(struct device *device, const void *address, uint64_t bytes,
                         bool is_written);

/* The last time that a stream accessed memory through this address; 0: it has not. What a graph
   launch does counts as done by the stream of the launch. */
uint64_t adaptor_order_last(struct device *device, capu_stream stream, const void *address);

/* Whether work enqueued next on `later`, or the host (NULL), comes after what `earlier` did at that
   time. */
bool adaptor_order_is_after(struct device *device, capu_stream later, capu_stream earlier,
                            uint64_t time);

/* The first violation; NULL: none, or not such an adaptor. Valid as long as the device. */
const char *adaptor_order_finding(struct device *device);

#endif
