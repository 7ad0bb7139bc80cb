/* The tensors that the op at hand touches, one access for each. */
#ifndef CAPU_RUNTIME_ACCESS_H
#define CAPU_RUNTIME_ACCESS_H

#include "runtime/internal.h"

/* Gives a tensor that the op at hand has not named yet its access. NULL: no memory. */
struct access *access_create(struct operands *operands, struct tensor *tensor);

/* The access of a tensor in the op at hand, new or the one it has already. NULL: no memory. */
static inline struct access *access_of(struct operands *operands, struct tensor *tensor)
{
    return tensor->in_op.stamp == operands->stamp ? &operands->accesses[tensor->in_op.index]
                                                  : access_create(operands, tensor);
}

/* Adds an access by hand: for replays. NO_HOST_MEMORY. */
capu_status access_add(capu_context *context, struct tensor *tensor, uint32_t role);

/* Whether an access needs what the tensor holds now. */
static inline bool access_needs_contents(const struct access *access)
{
    return access->is_read || (access->is_partial && tensor_is_defined(access->tensor));
}

/* The role of an access in the record: scratch is a write nobody reads, and a partial write of
   nothing is whole. */
static inline uint32_t access_role(const struct access *access)
{
    bool writes_nothing_before =
        access->role == CAPU_UPDATE && !access->is_read && !tensor_is_defined(access->tensor);

    return access->role == CAPU_SCRATCH || writes_nothing_before ? CAPU_WRITE : access->role;
}

#endif
