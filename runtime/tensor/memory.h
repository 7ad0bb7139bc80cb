/*
 * The memory of a context: pages, addresses, host memory, and the tensors in it.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_MEMORY_H
#define CAPU_RUNTIME_MEMORY_H

#include "allocator/host_arena.h"
#include "allocator/pages.h"
#include "allocator/ranges.h"
#include "allocator/slabs.h"
#include "runtime/context/failure.h"
#include "runtime/context/names.h"
#include "runtime/tensor/page_census.h"
#include "runtime/tensor/tensors.h"

struct memory {
    struct failure *failure; /* where its errors go */

    struct pages *pages;
    struct ranges *ranges;
    struct slabs *slabs;
    struct host_arena *arena;
    size_t edge_page_count; /* mapped pages that two tensors share */
    struct page_census census;

    struct tensors tensors;
    struct names names; /* of tensors, ops and labels */
    /* Tensors with contents; transient ones become undefined when an iteration begins. */
    struct tensor_list persistent;
    struct tensor_list transient;
    uint64_t persistent_pages; /* page_count of the tensors in `persistent` */
};

/* Pages that are always resident: shared edges, and slabs that hold anything. Empty slabs are given
   back when their pages are needed. */
static inline size_t memory_fixed_pages(const struct memory *memory)
{
    return slabs_used_count(memory->slabs) + memory->edge_page_count;
}

/* Pages that a plan leaves to them: as many as were always resident at some time since the
   iteration before the last one ended. */
static inline size_t memory_kept_pages(const struct memory *memory)
{
    return slabs_kept_count(memory->slabs) + memory->edge_page_count;
}

#endif
