/* Allocations and their tensors as structs: made, and freed when nothing needs them any more. */
#ifndef CAPU_RUNTIME_ALLOCATION_H
#define CAPU_RUNTIME_ALLOCATION_H

#include "runtime/tensors.h"

/* An allocation of one tensor at an address that was taken for it. NO_HOST_MEMORY. */
capu_status allocation_create(capu_context *context, void *address, uint64_t bytes,
                              size_t page_count, struct allocation **out);

/* Frees the structs of an allocation that has departed. */
void allocation_destroy(capu_context *context, struct allocation *allocation);

#endif
