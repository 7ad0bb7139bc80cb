/*
 * Parked allocations: the user has freed them, but their ranges stay mapped.
 *
 * Programs that allocate inside each step free and allocate the same tensors again and again. While
 * a guide is active, unmapping them would cost a driver call per tensor and step, and replays may
 * still need their contents. So a planned allocation that is freed is parked, and the next
 * iteration's allocation takes it back.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_PARKED_H
#define CAPU_RUNTIME_PARKED_H

#include "runtime/tensor/tensors.h"

struct residency;

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
