/*
 * A tensor: what the runtime knows of it.
 *
 * A tensor is an allocation or a piece split from one. Part of it may lie in always-resident memory
 * (a slab slot, or edge pages shared with a neighbour); the rest, its span, is whole pages of its
 * own and is what comes and goes.
 *
 * Contents: a tensor without contents is undefined. With contents it is known to be zero, or its
 * span is valid on the device, on the host, or on both; or it is lost: a plan gave it up, to be
 * recomputed or not at all. Invariant: on_device implies is_mapped; on_host implies a host block of
 * span_bytes; tensors are only lost in an iteration that follows or followed a guide.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_TENSOR_H
#define CAPU_RUNTIME_TENSOR_H

#include "allocator/host_arena.h"
#include "capuchin/memory.h"
#include "device/lane.h"

struct tensor;
struct departure;

/* A doubly linked list without allocation: the head is the oldest. */
struct tensor_list {
    struct tensor *head;
    struct tensor *tail;
    size_t count;
};

struct tensor_link {
    struct tensor_list *list; /* NULL: in none */
    struct tensor *previous;
    struct tensor *next;
};

/* What capu_malloc gave. Its tensors cover it without gaps, in address order. */
struct allocation {
    void *address;
    uint64_t bytes;
    size_t page_count;           /* of its range; 0: a slab slot */
    struct tensor *first;        /* by address */
    uint64_t *edge_pages;        /* device_page of each range page that two tensors share, or
                                    DEVICE_NO_PAGE; NULL: never split */
    bool is_freed;               /* waits for its last use to pass */
    uint64_t freed_iteration;    /* iteration in or after which it was freed */
    struct departure *departure; /* while it waits */
    bool is_parked; /* freed, but its range stays mapped for the guide, see install.h */
    struct allocation *next_parked;
};

struct tensor {
    void *address;
    uint64_t bytes;
    void *span; /* the managed part: pages of its own */
    uint64_t span_bytes;
    size_t page_count;  /* behind the span; 0: wholly always resident */
    device_page *pages; /* page_count of them, valid while is_mapped */

    struct allocation *allocation;
    struct tensor *previous; /* its neighbours in the allocation, by address */
    struct tensor *next;

    const char *name;
    uint32_t kind;
    uint32_t hint;
    bool is_persistent;
    bool is_read_after; /* read outside iterations, or made persistent late: plans keep it to their
                           end */

    bool is_carried;     /* an iteration has read what was in it before that began */
    uint32_t overwrites; /* unless carried: iterations that touched it, and overwrote it first */

    bool is_defined;
    bool is_zero;
    bool is_mapped; /* holds its pages */
    bool is_placed; /* a guide is installed that has pages for it, whether it holds them or not */
    bool is_owed;   /* the plan dropped it and would recompute it later */
    uint32_t guide_index;        /* in that guide, also after the iteration has left it */
    struct departure *departure; /* given up, still mapped until its last users are past; or NULL */
    bool on_device;
    bool on_host;
    bool is_saved; /* a plan has made that copy for its next way out, which is still to come */
    struct host_block host;
    bool keeps_block; /* the host block stays also without a copy in it: a guide has it planned */
    uint64_t version; /* counts writes */
    uint64_t zeroed;  /* iterations begun when it was made known zeros */

    struct lane_position used;    /* its last use on the compute lane */
    struct lane_position written; /* its last write there */
    struct lane_position ready;   /* when its last copy in has arrived */
    struct lane_position left;    /* when its last copy out has finished */

    struct tensor_link residency; /* in the pager's lists while mapped */
    struct tensor_link contents;  /* in a list of tensors with contents */

    uint64_t operand_stamp; /* op that last named it, and where in that op's accesses */
    size_t operand_index;
    uint64_t record_stamp; /* iteration record it is in, and where */
    size_t record_index;
    uint64_t
        eviction_stamp;    /* iteration record of its last eviction, and where; SIZE_MAX: it came */
    size_t eviction_index; /* back since */
};

static inline bool tensor_is_managed(const struct tensor *tensor)
{
    return tensor->page_count > 0;
}

/* With contents that are nowhere. */
static inline bool tensor_is_lost(const struct tensor *tensor)
{
    return tensor->is_defined && !tensor->is_zero && tensor->page_count > 0 && !tensor->on_device &&
           !tensor->on_host;
}

/* Nothing in it that a copy could keep. */
static inline bool tensor_is_empty(const struct tensor *tensor)
{
    return !tensor->is_defined || tensor->is_zero || tensor_is_lost(tensor);
}

static inline unsigned char *tensor_end(const struct tensor *tensor)
{
    return (unsigned char *)tensor->address + tensor->bytes;
}

#endif
