/*
 * Traffic: what a context has copied to host memory and back since it was created, and how long
 * that took. Iterations have reports; these totals also exist without any.
 *
 * Waits of compute outside iterations are gaps between two marks on the compute lane: one before
 * the first copy or eviction for an op, and the op's own. Their times are read when the second has
 * passed, at the next such op or when all work is waited for, so that noting one never waits.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_TRAFFIC_H
#define CAPU_RUNTIME_TRAFFIC_H

#include "capuchin/context.h"
#include "capuchin/report.h"
#include "device/lane.h"
#include "runtime/iteration/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct records;
struct tensor;

struct traffic_gap {
    struct lane_position from, to;
};

struct traffic {
    capu_traffic totals;
    struct lane_position from; /* of the op at hand; no lane: nothing is missing for it */
    bool has_waited;           /* for it: the host for room, or compute for a copy */
    struct traffic_gap *gaps;  /* not read yet, the oldest first */
    size_t gap_count, gap_capacity;
};

void traffic_finish(struct traffic *traffic);

/* A tensor is copied to host memory, or back. Counts for the report of the iteration, too. */
void traffic_out(struct records *records, struct tensor *tensor);
void traffic_back(struct records *records, struct tensor *tensor);

/* A tensor is evicted by a method other than SWAP, without a copy. As above. */
void traffic_dropped(struct records *records, const struct tensor *tensor, uint32_t method);

/* The calling thread has waited for room since a time of the device. As above. */
void traffic_host_waited(struct records *records, uint64_t begin_ns);

/* Another op is at hand, for which nothing has waited yet. */
static inline void traffic_begin_op(struct traffic *traffic)
{
    traffic->from.lane = NULL;
    traffic->has_waited = false;
}

/* Operands of the op at hand are missing; its start has been marked, at `start`. Nothing is noted
   in iterations, whose reports have the waits, nor where there is no host memory or event for it.
 */
void traffic_wait_begin(struct records *records);
void traffic_wait_end(struct records *records, struct lane_position start);

/* Reads the gaps that have passed. Before marks on the compute lane are retired. */
void traffic_settle(struct records *records);

/*
 * How fast a plan's copies are. In timed iterations under a plan, an event is recorded before and
 * after each copy, on its lane. Copies may end after their iteration, so their times are read when
 * an iteration is completed after that, and count there; nothing waits for them.
 *
 * A copy that cannot be timed, for lack of memory or of events, is not counted.
 */
struct copy_time {
    struct device_event *begin; /* NULL: not made; events are used again */
    struct device_event *end;
    uint64_t bytes;
};

struct copy_times {
    struct {
        struct copy_time *times; /* ring; its capacity is a power of two */
        size_t capacity;
        size_t first;
        size_t count;
        bool is_open; /* the newest has begun */
    } ways[COPY_WAYS];
};

void copy_times_finish(struct records *records);

/* A copy is about to be enqueued, and has been. */
void copy_times_begin(struct records *records, enum copy_way way, uint64_t bytes);
void copy_times_end(struct records *records, enum copy_way way);

/* Adds the copies that have ended since the last call to the record, and their rates to its report.
 */
void copy_times_read(struct records *records, struct record *record);

#endif
