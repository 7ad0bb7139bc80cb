/* Waiting: a loop that is left when memory has changed, which another thread has to do. A part of
   the kernel that computes addresses would hang in it. */
#ifndef CAPU_INTERPOSE_WAITS_H
#define CAPU_INTERPOSE_WAITS_H

#include "interpose/flow.h"

/* Stores in *awaited a load or atomic that a loop may wait for; NULL: there is none. On failure it
   is NULL, too. Errors: NO_HOST_MEMORY. */
capu_status waits_find(const struct flow *flow, const struct ptx_instruction **awaited);

#endif
