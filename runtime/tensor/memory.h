/*
 * The memory of a context: pages, addresses, host memory, and the allocations and tensors in it.
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

/*
 * Allocations and their tensors as structs: creating them, and freeing them once nothing refers to
 * them. Memory, addresses and contents are not handled here.
 */

/* Creates an allocation of one tensor at an address that has been reserved for it, and makes the
   tensor findable. NO_HOST_MEMORY. */
capu_status allocation_create(struct memory *memory, void *address, uint64_t bytes,
                              size_t page_count, struct allocation **out);

/* Frees the structs of an allocation and its tensors. Its memory has been given back before.
   `is_in_iteration`: an iteration is under way. */
void allocation_destroy(struct memory *memory, struct allocation *allocation, bool is_in_iteration);

/*
 * Finding tensors by the address that a caller gave, with the error that fits, and naming them in
 * messages and records.
 */

/* The tensor at an address. WRONG_ADDRESS: there is none, or it has been freed; the text says
 * which.
 */
capu_status lookup_tensor(struct memory *memory, const void *address, const char *what,
                          struct tensor **tensor);

/* The allocation that starts at an address, or the error that fits: the same, also inside an
   allocation. */
capu_status lookup_allocation(struct memory *memory, const void *address, const char *what,
                              struct allocation **allocation);

/* Whether the program has given the tensor a name. */
bool lookup_is_named(const struct tensor *tensor);

/* The name of a tensor for people: its own, or its address as text. */
const char *lookup_name(struct memory *memory, struct tensor *tensor);

#endif
