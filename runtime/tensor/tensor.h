/*
 * A tensor: what the runtime knows of it.
 *
 * A tensor is an allocation or a piece split from one. Part of it may lie in always-resident memory
 * (a slab slot, or edge pages shared with a neighbour); the rest, its span, is whole pages of its
 * own and is what is evicted and brought back.
 *
 * Where its pages are and what it contains is its state, see tensor_state.h.
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

enum { CACHE_LINE_BYTES = 64 };

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
    bool is_freed;               /* by the user; it departs, or is parked */
    uint64_t freed_iteration;    /* iteration in or after which it was freed */
    struct departure *departure; /* while it waits */
    bool is_parked;              /* freed, but its range stays mapped: departure.h */
    struct allocation *next_parked;
};

/* Where the pages of a tensor's span are. */
enum tensor_pages {
    PAGES_NONE,      /* nowhere; also of a tensor without a span */
    PAGES_OWN,       /* mapped: pages of its own */
    PAGES_LEAVING,   /* the same, until its last users have passed: departure.h */
    PAGES_PLACED,    /* a guide is installed that has pages for it, and it holds them */
    PAGES_PLACED_OUT /* the same, but it does not hold them: other tensors may */
};

/* What a tensor contains, and where that is. */
enum tensor_contents {
    CONTENTS_UNDEFINED, /* nothing: it has not been written, or was given up by the program */
    CONTENTS_FIXED,     /* in memory that is always resident */
    CONTENTS_ZERO,      /* known zeros, which are nowhere: capu_zero marks instead of writing */
    CONTENTS_DEVICE,    /* in its pages only */
    CONTENTS_HOST,      /* in its host block only */
    CONTENTS_BOTH,      /* in both */
    CONTENTS_LOST,      /* a plan gave them up */
    CONTENTS_OWED       /* the same, and the plan would have recomputed them later */
};

/* Only tensor_state.c writes it. */
struct tensor_state {
    enum tensor_pages pages : 8;
    enum tensor_contents contents : 8;
    bool is_saved; /* the host copy was made for the next eviction, which is still to come */
    struct departure *departure; /* while PAGES_LEAVING; otherwise NULL */
};

/* Where a list that is made anew for each op or iteration has the tensor: valid if the stamp is
   that of the op or iteration under way, so that nothing needs to be reset. */
struct tensor_mention {
    uint64_t stamp;
    size_t index;
};

/* Each of the first four groups is a cache line: with thousands of tensors, a line of an operand
   that is not in the cache costs about as much as all else that is done with the operand. */
struct tensor {
    /* Every op. */
    void *address;
    uint64_t bytes;
    struct tensor_mention in_op; /* the op that named it last, and its access there */
    size_t page_count;           /* of the span; 0: it is always resident */
    struct tensor_state state;
    uint32_t guide_index; /* in the guide installed, also after the iteration has left it */
    bool is_persistent;
    bool is_read_after; /* read outside iterations, or made persistent late: plans keep it to their
                           end */
    bool is_live_in;    /* some iteration has read contents from before it began */
    bool keeps_block;   /* the block stays without a copy in it, too: swap_reserve_block */

    /* Every op that is recorded or planned. */
    struct lane_position used;       /* its last use on the compute lane */
    struct lane_position ready;      /* when its last copy in has arrived */
    struct tensor_mention in_record; /* the record of the iteration that touched it last */
    uint64_t version;                /* counts writes */
    uint32_t overwrites; /* iterations that touched it first by overwriting it; see is_live_in */
    uint16_t kind;
    uint16_t hint;

    /* The first op of an iteration. */
    struct allocation *allocation;
    struct tensor *previous; /* its neighbours in the allocation, by address */
    struct tensor *next;
    const char *name;
    uint64_t span_bytes;
    struct tensor_link contents; /* in a list of tensors with contents */

    /* Every op without a plan. */
    struct tensor_link residency;      /* in a list of residency.h, while PAGES_OWN */
    struct lane_position left;         /* when its last copy out has finished */
    struct tensor_mention in_eviction; /* the record of its last eviction; SIZE_MAX: it is back */

    /* Few. */
    void *span;                        /* the managed part: pages of its own */
    device_page *pages;                /* page_count of them, valid while it holds pages */
    struct lane_position written;      /* its last write on the compute lane */
    struct tensor_mention in_timeline; /* the timeline log that names it, and its number there */
    struct host_block host;
    uint64_t out_bytes;  /* copied to host memory, since it was made */
    uint64_t back_bytes; /* copied back */
    uint64_t zeroed;     /* iterations begun when it was made known zeros */
    uint64_t sum;        /* in strict mode: a checksum of this version of its contents, */
    uint64_t input_sum;  /* and one of what the op that wrote them had read */
    uint64_t summed_version;
};

static inline bool tensor_is_managed(const struct tensor *tensor)
{
    return tensor->page_count > 0;
}

static inline unsigned char *tensor_end(const struct tensor *tensor)
{
    return (unsigned char *)tensor->address + tensor->bytes;
}

#endif
