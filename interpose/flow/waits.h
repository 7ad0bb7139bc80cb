/*
 * Waiting: a loop that is left when memory has changed, which another thread has to do. A part of
 * the kernel that computes addresses would hang in it.
 *
 * The other thread may be one of the same launch: threads take a lock, meet at a barrier, or pass
 * sums from block to block. It is taken to be if the kernel itself stores to all memory that the
 * awaited access may reach, before it waits or by that access. Otherwise another kernel or the host
 * is awaited.
 */
#ifndef CAPU_INTERPOSE_WAITS_H
#define CAPU_INTERPOSE_WAITS_H

#include "interpose/flow/flow.h"

struct waits {
    bool has_some;
    const struct ptx_instruction *for_others; /* waits for another kernel; NULL: none does */
};

/* Errors: NO_HOST_MEMORY. */
capu_status waits_find(struct flow *flow, struct waits *waits);

#endif
