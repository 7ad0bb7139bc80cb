/*
 * The tensors that the current op touches, one access for each, however many operands name it.
 * (Their structs are in internal.h.)
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_ACCESS_H
#define CAPU_RUNTIME_ACCESS_H

#include "base/array.h"
#include "runtime/context/internal.h"

/* Creates the access of a tensor that the current op has not named yet. NULL: no memory. */
static inline struct access *access_create(struct operands *operands, struct tensor *tensor)
{
    struct access *access;

    if (!array_reserve(&operands->accesses, &operands->access_capacity, operands->access_count + 1,
                       sizeof(*access))) {
        return NULL;
    }
    tensor->in_op.stamp = operands->stamp;
    tensor->in_op.index = operands->access_count;
    access = &operands->accesses[operands->access_count++];
    *access = (struct access){.tensor = tensor};
    return access;
}

/* The access of a tensor in the current op: the one it already has, or a new one. NULL: no host
   memory. */
static inline struct access *access_of(struct operands *operands, struct tensor *tensor)
{
    return tensor->in_op.stamp == operands->stamp ? &operands->accesses[tensor->in_op.index]
                                                  : access_create(operands, tensor);
}

/* Adds an access that no operand asks for: replays have only accesses. NO_HOST_MEMORY. */
capu_status access_add(capu_context *context, struct tensor *tensor, uint32_t role);

/* Whether an access needs the present contents of its tensor. */
static inline bool access_needs_contents(const struct access *access)
{
    return access->is_read || (access->is_partial && tensor_is_defined(access->tensor));
}

/* The role of an access in the record. Scratch is recorded as a write, because nothing reads it;
   and a partial write of a tensor without contents as a whole one, because there is nothing to
   keep. */
static inline uint32_t access_role(const struct access *access)
{
    bool writes_nothing_before =
        access->role == CAPU_UPDATE && !access->is_read && !tensor_is_defined(access->tensor);

    return access->role == CAPU_SCRATCH || writes_nothing_before ? CAPU_WRITE : access->role;
}

/* An update cannot be repeated. A function made for replays leaves the updated tensor alone, so
   such an op is replayable if the tensor is always resident: otherwise it would be brought back for
   nothing. */
static inline bool access_allows_replay(const struct operands *operands,
                                        const struct access *access)
{
    return access->recorded != CAPU_UPDATE ||
           (operands->call.replay != NULL && !tensor_is_managed(access->tensor));
}

/* Whether the op at hand may run again; stores the recorded role of each access. */
static inline bool access_can_replay(struct operands *operands)
{
    bool can = operands->call.is_replayable;

    for (size_t i = 0; i < operands->access_count; i++) {
        struct access *access = &operands->accesses[i];

        access->recorded = access_role(access);
        can = can && access_allows_replay(operands, access);
    }
    return can;
}

#endif
