/*
 * The pager: which tensors are resident, in passive mode.
 *
 * Mapped tensors that are not leaving stand in one of three lists, least recently used first: empty
 * (nothing in them worth keeping), clean (a valid host copy), dirty. A tensor that leaves is queued
 * with the positions its last users reach; its pages are unmapped and free once those are past, and
 * until then an access takes it back as it was. A freed allocation goes the same way as a whole.
 *
 * The host waits only when memory is needed at once, and then for the departure that was queued
 * first: the delayed synchronisation of Capuchin (ASPLOS 2020), section "delayed synchronisation".
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_PAGER_H
#define CAPU_RUNTIME_PAGER_H

#include "runtime/tensors.h"

/* Something that is leaving: a tensor's span, or a freed allocation. */
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

/* First in, first out; departures that wait for a copy out queue apart from those that do not, so
   that a quick one never stands behind a slow one. */
struct departure_queue {
    struct departure *head;
    struct departure *tail;
};

struct pager {
    struct tensor_list empty;
    struct tensor_list clean;
    struct tensor_list dirty;
    struct departure_queue copying;
    struct departure_queue leaving;
    struct departure *spare; /* departures for reuse */
    size_t leaving_pages;    /* in both queues */
    uint64_t order;
    bool has_waited; /* since the op at hand began: the host for room, or compute for a copy in */
};

/*
 * Sees to it that `page_count` pages can be taken, evicting what is no operand of the op at hand
 * (tensor.operand_stamp). OVER_BUDGET: too much is in use by operands and always-resident pages;
 * HOST_OVER_BUDGET, NO_HOST_MEMORY: nowhere to evict to. Nothing is lost on failure.
 */
capu_status pager_make_room(capu_context *context, size_t page_count);

/* Gives back always-resident pages that no small tensor lives in any more; waits for the compute
   lane. */
capu_status pager_trim(capu_context *context);

/* Makes a tensor's span resident, with its contents if asked for; the compute lane is made to wait
   for them. Pre: pager_make_room for its pages. */
capu_status pager_bring(capu_context *context, struct tensor *tensor, bool needs_contents);

/* Starts a tensor's departure. Pre: mapped, not leaving. */
capu_status pager_evict(capu_context *context, struct tensor *tensor);

/* Puts a mapped tensor into the list it belongs to now, as the most recently used. */
void pager_touch(capu_context *context, struct tensor *tensor);

/* Drops the host copy, once its last copy is past. */
void pager_drop_host_copy(capu_context *context, struct tensor *tensor);

/* Keeps an operand of the op at hand: takes it back as it was if it is leaving, and makes it the
   most recently used. */
void pager_claim(capu_context *context, struct tensor *tensor);

/* Makes sure that the next pager_bury can note its departure. NO_HOST_MEMORY. */
capu_status pager_reserve_bury(capu_context *context);

/* Starts the departure of a freed allocation: `used` is the position behind its last use. Pre:
   pager_reserve_bury. */
void pager_bury(capu_context *context, struct allocation *allocation, struct lane_position used);

/* Takes a buried allocation back for a new one of the same address and size: its pages stay, its
   tensor is undefined. */
void pager_unbury(capu_context *context, struct allocation *allocation);

/* Waits for a buried allocation's departure and ends it. */
capu_status pager_wait_buried(capu_context *context, struct allocation *allocation);

/* Frees what has left. Does not wait. */
capu_status pager_reap(capu_context *context);

/* For the context's end, when all work is past: waits for every departure; frees an allocation that
   lives still, whatever the device says. */
void pager_finish(capu_context *context);
void pager_abandon(capu_context *context, struct allocation *allocation);

#endif
