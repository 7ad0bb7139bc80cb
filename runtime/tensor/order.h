/*
 * The order of work on a tensor: which earlier work later work waits for.
 *
 * Three positions say what still uses a tensor's pages: `used`, its last use on the compute lane;
 * `ready`, the end of its last copy in; `left`, the end of its last copy out. (`written`, its last
 * write on the compute lane, is at or before `used`.) Work that is about to touch the pages follows
 *
 *     an access of compute       ready; and left, if it writes
 *     a copy in                  used, left, ready
 *     a copy out                 used, or written if reads may run beside it; ready
 *     another tensor's first     used, left, ready
 *     unmapping, on the host     used, left, ready
 *
 * and the host reads the host copy after `left`. These rules hold in every state of a tensor,
 * inside iterations and between them, with a plan and without. Code that adds a way to reach a
 * tensor must ask here. tests/support/adaptor_order.h checks them in all tests of the runtime.
 */
#ifndef CAPU_RUNTIME_ORDER_H
#define CAPU_RUNTIME_ORDER_H

#include "capuchin/op.h"
#include "runtime/tensor/tensor.h"

/* Compute follows what an access in this role must not overtake. */
static inline capu_status order_access(struct lane *compute, const struct tensor *tensor,
                                       uint32_t role)
{
    /* Most operands have no copies to follow, which costs no call. */
    capu_status status = tensor->ready.lane != NULL ? lane_follow(compute, tensor->ready) : CAPU_OK;

    return status == CAPU_OK && role != CAPU_READ && tensor->left.lane != NULL
               ? lane_follow(compute, tensor->left)
               : status;
}

/* Compute has used the tensor until `end`, after order_access. What follows `used` follows the copy
   in, too, so that is not asked for again. */
static inline void order_used(struct tensor *tensor, struct lane_position end)
{
    tensor->used = end;
    tensor->ready = (struct lane_position){0};
}

/* A lane follows everything that uses the tensor's pages: they get other contents. */
static inline capu_status order_all(struct lane *lane, const struct tensor *tensor)
{
    capu_status status = lane_follow(lane, tensor->used);

    if (status == CAPU_OK) {
        status = lane_follow(lane, tensor->left);
    }
    return status == CAPU_OK ? lane_follow(lane, tensor->ready) : status;
}

/* The copy out follows the writes whose result it copies, and with `after_reads` all uses. */
static inline capu_status order_copy_out(struct lane *d2h, const struct tensor *tensor,
                                         bool after_reads)
{
    capu_status status = lane_follow(d2h, after_reads ? tensor->used : tensor->written);

    return status == CAPU_OK ? lane_follow(d2h, tensor->ready) : status;
}

/* The host waits for everything that uses the tensor's pages. */
static inline capu_status order_wait(const struct tensor *tensor)
{
    capu_status status = lane_wait(tensor->used);

    if (status == CAPU_OK) {
        status = lane_wait(tensor->left);
    }
    return status == CAPU_OK ? lane_wait(tensor->ready) : status;
}

/* Whether nothing uses them any more. */
static inline bool order_is_over(const struct tensor *tensor)
{
    return lane_has_passed(tensor->used) && lane_has_passed(tensor->left) &&
           lane_has_passed(tensor->ready);
}

#endif
