/*
 * Parked allocations: freed by the user, but their ranges stay mapped, for replays of the guide in
 * force and for the next iteration's allocations of them.
 */
#ifndef CAPU_RUNTIME_PARKED_H
#define CAPU_RUNTIME_PARKED_H

#include "runtime/tensors.h"

/* Parks an allocation of the guide in force that the user freed; takes it back for the user.  */
void parked_add(capu_context *context, struct allocation *allocation);
void parked_remove(capu_context *context, struct allocation *allocation);

/* An allocation nobody has asked for yet, at an address of an earlier one: unmapped, not to be
   found, parked. NOT_READY: the addresses are taken; NO_HOST_MEMORY. */
capu_status parked_create(capu_context *context, const void *address, uint64_t bytes,
                          size_t page_count, struct allocation **out);

/* Whether the iteration under way may still need an allocation that the user has freed. */
bool parked_is_in_use(const capu_context *context, const struct allocation *allocation);

/* Ends parked allocations that no guide in force has. */
void parked_clear(capu_context *context);

#endif
