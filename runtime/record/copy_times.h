/*
 * How fast a plan's copies are. In timed iterations under a plan, an event is recorded before and
 * after each copy, on its lane. Copies may end after their iteration, so their times are read when
 * an iteration is completed after that, and count there; nothing waits for them.
 *
 * A copy that cannot be timed, for lack of memory or of events, is not counted. Owned by the
 * context's thread.
 */
#ifndef CAPU_RUNTIME_COPY_TIMES_H
#define CAPU_RUNTIME_COPY_TIMES_H

#include "capuchin/context.h"
#include "runtime/iteration/copy_sums.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct records;

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

struct record;

void copy_times_finish(struct records *records);

/* A copy is about to be enqueued, and has been. */
void copy_times_begin(struct records *records, enum copy_way way, uint64_t bytes);
void copy_times_end(struct records *records, enum copy_way way);

/* Adds the copies that have ended since the last call to the record, and their rates to its report.
 */
void copy_times_read(struct records *records, struct record *record);

#endif
