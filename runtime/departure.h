/*
 * Departures: tensors and freed allocations on their way out.
 *
 * What departs is queued with the positions its last users reach; its pages are unmapped and free
 * once those are past. Until then a tensor can be taken back as it was, and an allocation for a new
 * one of its size. Nothing waits unless it is told to: the delayed synchronisation of Capuchin
 * (ASPLOS 2020).
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_DEPARTURE_H
#define CAPU_RUNTIME_DEPARTURE_H

#include "runtime/tensors.h"

struct departure_queue;

/* A tensor's span, or a freed allocation. */
struct departure {
    struct departure_queue *queue;
    struct departure *previous;
    struct departure *next;
    struct tensor *tensor; /* one of the two is set */
    struct allocation *allocation;
    size_t page_count;
    uint64_t order;                /* counts departures: the oldest is waited for first */
    struct lane_position after[3]; /* free once all are past */
};

/* First in, first out. */
struct departure_queue {
    struct departure *head;
    struct departure *tail;
};

struct departures {
    struct departure_queue copying; /* wait for a copy out */
    struct departure_queue leaving; /* do not, and must never stand behind those that do */
    struct departure *spare;        /* for reuse */
    size_t leaving_pages;           /* in both queues */
    uint64_t order;
};

/* A departure to fill in; NULL: host memory is full. Appended to a queue, or recycled unused. */
struct departure *departure_take(struct departures *departures);
void departure_recycle(struct departures *departures, struct departure *departure);
void departure_append(struct departures *departures, struct departure_queue *queue,
                      struct departure *departure);

/* Takes a departure out of its queue: it does not happen, or it has. */
void departure_cancel(struct departures *departures, struct departure *departure);

/* Waits for one departure and ends it. */
capu_status departure_wait(capu_context *context, struct departure *departure);

/* Whether anything departs; waits for what was queued first (pre: there is something). */
bool departures_any(const capu_context *context);
capu_status departures_wait_oldest(capu_context *context);

/* Frees what has left. Does not wait. */
capu_status departures_reap(capu_context *context);

/* Makes sure that the next departure_bury can be noted. NO_HOST_MEMORY. */
capu_status departure_reserve(capu_context *context);

/* Starts the departure of a freed allocation: `used` is the position behind its last use. Pre:
   departure_reserve. */
void departure_bury(capu_context *context, struct allocation *allocation,
                    struct lane_position used);

/* Takes a buried allocation back for a new one of the same address and size: its pages stay, its
   tensor is undefined. */
void departure_unbury(capu_context *context, struct allocation *allocation);

/* Waits for a buried allocation's departure and ends it. */
capu_status departure_wait_buried(capu_context *context, struct allocation *allocation);

/* For the context's end, when all work is past: waits for every departure; frees an allocation that
   lives still, whatever the device says. */
void departures_finish(capu_context *context);
void departure_abandon(capu_context *context, struct allocation *allocation);

#endif
