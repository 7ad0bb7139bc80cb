/*
 * Allocations and their tensors as structs: creating them, and freeing them once nothing refers to
 * them. Memory, addresses and contents are not handled here.
 */
#ifndef CAPU_RUNTIME_ALLOCATION_H
#define CAPU_RUNTIME_ALLOCATION_H

#include "runtime/tensor/memory.h"

/* Creates an allocation of one tensor at an address that has been reserved for it, and makes the
   tensor findable. NO_HOST_MEMORY. */
capu_status allocation_create(struct memory *memory, void *address, uint64_t bytes,
                              size_t page_count, struct allocation **out);

/* Frees the structs of an allocation and its tensors. Its memory has been given back before.
   `is_in_iteration`: an iteration is under way. */
void allocation_destroy(struct memory *memory, struct allocation *allocation, bool is_in_iteration);

#endif
