/* The tensors that the op at hand touches, one access for each. */
#ifndef CAPU_RUNTIME_ACCESS_H
#define CAPU_RUNTIME_ACCESS_H

#include "runtime/tensors.h"

struct access;
struct operands;

/* The access of a tensor in the op at hand, new or the one it has already. NULL: no memory. */
struct access *access_of(struct operands *operands, struct tensor *tensor);

/* Adds an access by hand: for replays. NO_HOST_MEMORY. */
capu_status access_add(capu_context *context, struct tensor *tensor, uint32_t role);

/* Whether an access needs what the tensor holds now. */
bool access_needs_contents(const struct access *access);

/* The role of an access in the record: scratch is a write nobody reads, and a partial write of
   nothing is whole. */
uint32_t access_role(const struct access *access);

#endif
