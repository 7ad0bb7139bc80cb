/*
 * Departures: tensors and freed allocations on their way out.
 *
 * The pages of an evicted tensor may be reused only after the last work that touches them. Waiting
 * for that work when the tensor is evicted would stop the host, so the tensor is queued with the
 * positions that its last users reach, and its pages are unmapped when those have passed: the
 * delayed synchronisation of Capuchin (ASPLOS 2020). Until then it can be taken back as it was. A
 * freed allocation departs in the same way, and a new one of its size can take its place.
 *
 * There are two queues, so that what leaves without a copy never waits for a copy.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_DEPARTURE_H
#define CAPU_RUNTIME_DEPARTURE_H

#include "runtime/tensor/tensors.h"

struct departure_queue;
struct residency;

/* A tensor's span, or a freed allocation. */
struct departure {
    struct departure_queue *queue;
    struct departure *previous;
    struct departure *next;
    struct tensor *tensor; /* one of the two is set */
    struct allocation *allocation;
    size_t page_count;
    uint64_t order;                /* counts departures, so that the oldest is waited for first */
    struct lane_position after[3]; /* it can end once all have passed */
};

/* First in, first out. */
struct departure_queue {
    struct departure *head;
    struct departure *tail;
};

struct departures {
    struct departure_queue copying; /* those that wait for a copy */
    struct departure_queue leaving; /* those that do not */
    struct departure *spare;        /* for reuse */
    size_t leaving_pages;           /* in both queues */
    uint64_t order;
};

/* Returns a departure to fill in; NULL: no host memory. It is then appended to a queue, or
 * recycled. */
struct departure *departure_take(struct departures *departures);
void departure_recycle(struct departures *departures, struct departure *departure);
void departure_append(struct departures *departures, struct departure_queue *queue,
                      struct departure *departure);

/* Takes a departure out of its queue, because it is cancelled or has ended. */
void departure_cancel(struct departures *departures, struct departure *departure);

/* Waits for one departure and ends it. */
capu_status departure_wait(struct residency *residency, struct departure *departure);

/* Whether anything departs; and waits for the departure that was queued first. Pre: there is one.
 */
bool departures_any(const struct residency *residency);
capu_status departures_wait_oldest(struct residency *residency);

/* Ends the departures whose positions have passed. Does not wait. */
capu_status departures_reap(struct residency *residency);

/* Makes sure that the next departure_bury cannot fail. NO_HOST_MEMORY. */
capu_status departure_reserve(struct residency *residency);

/* Starts the departure of a freed allocation whose last use ends at `used`. Pre: departure_reserve.
 */
void departure_bury(struct residency *residency, struct allocation *allocation,
                    struct lane_position used);

/* Takes a buried allocation back to serve as a new one of the same address and size. It keeps its
   pages; its tensor is undefined. */
void departure_unbury(struct residency *residency, struct allocation *allocation);

/* Waits for a buried allocation's departure and ends it. */
capu_status departure_wait_buried(struct residency *residency, struct allocation *allocation);

/* For destroying a context, when all work has finished: the first ends every departure, the second
   frees an allocation that is still alive. Neither stops at a failure of the device. */
void departures_finish(struct residency *residency);
void departure_abandon(struct residency *residency, struct allocation *allocation);

/*
 * Parked allocations: the user has freed them, but their ranges stay mapped.
 *
 * Programs that allocate inside each step free and allocate the same tensors again and again. While
 * a guide is active, unmapping them would cost a driver call per tensor and step, and replays may
 * still need their contents. So a planned allocation that is freed is parked, and the next
 * iteration's allocation takes it back. Otherwise it departs once the guide has been left.
 */

/* Parks a freed allocation of the active guide, and takes it back for the user. */
void parked_add(struct residency *residency, struct allocation *allocation);
void parked_remove(struct residency *residency, struct allocation *allocation);

/* Creates a parked allocation for one that an iteration is going to ask for, at the address that it
   had before. It is unmapped and cannot be found by address. NOT_READY: the addresses are taken.
   NO_HOST_MEMORY. */
capu_status parked_create(struct residency *residency, const void *address, uint64_t bytes,
                          size_t page_count, struct allocation **out);

/* Whether the iteration under way may still need an allocation that the user has freed. */
bool parked_is_in_use(const struct residency *residency, const struct allocation *allocation);

/* Starts the departure of parked allocations that the active guide does not have. */
void parked_clear(struct residency *residency);

#endif
