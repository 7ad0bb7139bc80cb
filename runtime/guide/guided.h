/*
 * The plan that iterations follow, what it is bound to, and what an iteration that left it owes.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_GUIDED_H
#define CAPU_RUNTIME_GUIDED_H

#include "device/device.h"
#include "runtime/context/config.h"
#include "runtime/guide/guide.h"
#include "runtime/guide/owed.h"
#include "runtime/guide/plan_entry.h"
#include "runtime/iteration/iteration_state.h"
#include "runtime/lanes/lanes.h"
#include "runtime/op/op.h"
#include "runtime/tensor/memory.h"

/*
 * The binding of a guide: the live tensors and pages that its numbers stand for, and how far the
 * iteration under way has come in it.
 *
 * A context has one binding, since one guide is active at a time. Installing fills it
 * (following.h). When an iteration leaves its guide, the binding lives on until the iteration ends:
 * recovery runs ops of the guide again with the arguments that this iteration gave them, and
 * decides by versions what such a run may read and overwrite.
 *
 * A tensor that gives its pages up leaves its bytes there until another tensor takes one of them.
 * Takes are counted, so that leaving the guide can tell which tensors still have theirs.
 */

/* Tensors in a queue of the free list, by number plus one; 0: none. */
struct bound_queue {
    uint32_t head;
    uint32_t tail;
};

struct bound_tensor {
    struct tensor *tensor;     /* NULL: always resident, or gone */
    uint64_t taken;            /* binding.takes when it took its pages last; 0: it has had none */
    bool is_arriving;          /* installing brought its contents back: that copy is not one of the
                                  plan's */
    bool has_left_newest;      /* when it gave its pages up, only they had its newest contents */
    struct bound_queue *queue; /* of the free list (free_list.h), which it is in; NULL: none */
    uint32_t previous;         /* in it, by number plus one */
    uint32_t next;
};

/* What an op of this iteration was called with; for replays. */
struct bound_op {
    const void *arguments; /* in staging memory, until the next iteration ends */
    unsigned char *kept;   /* what it uploaded, until then, too; NULL: not an upload, or not kept */
    uint64_t kept_bytes;
    uint64_t duration_ns;
};

struct binding {
    struct bound_tensor *tensors; /* per tensor of the guide */
    size_t tensor_capacity;
    struct bound_op *ops; /* per op */
    size_t op_capacity;
    uint64_t *versions; /* per access: of the tensor, as read or made in this iteration */
    size_t access_capacity;
    device_page *pages; /* per page number; DEVICE_NO_PAGE: none yet, or taken by a tensor. Of an
                           unplaced guide: no page */
    size_t page_capacity;
    uint64_t
        *newest; /* per page number, while the guide is left: the newest `taken` of its tensors */
    size_t newest_capacity;
    size_t free_pages;          /* pages of an unplaced guide that no tensor has */
    struct bound_queue leaving; /* see free_list.h */
    struct bound_queue expected;
    uint64_t takes;      /* counts, since installing, tensors that took their pages */
    uint32_t next;       /* op to come in this iteration */
    uint32_t free_count; /* tensors that pass pages on and were freed in this iteration */
};

/* Starts a binding to no tensors and no pages. NO_HOST_MEMORY: there is room for no guide. */
capu_status binding_start(struct binding *binding, const struct guide *guide);

/* Zeroed is fine. */
void binding_finish(struct binding *binding);

struct guided {
    /* What it works with. */
    struct failure *failure;
    struct lanes *lanes;
    struct memory *memory;
    const struct settings *settings;
    const struct iteration_state *iteration;

    struct plan_entry *active; /* whose guide is active; NULL: none */
    struct binding binding;    /* of its guide, or of the one that this iteration has left */
    struct owed owed;          /* in an iteration that has left its guide */
    uint64_t placement;        /* counts plans that became active */
};

#endif
