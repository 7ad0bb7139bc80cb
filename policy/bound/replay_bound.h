/*
 * A bound that accounts for what replays read (derived in docs/bounds.md): a minimum cut under
 * prices for memory and links.
 */
#ifndef CAPU_POLICY_REPLAY_BOUND_H
#define CAPU_POLICY_REPLAY_BOUND_H

#include <stdint.h>

#include "policy/format/trace.h"
#include "policy/model/trace_index.h"

/* A cut: op `cut` starts. If it is known that the ops from `tail` on, after the cut, take at least
   tail_ns longer than their own time, that counts in addition. Pre: the ops exist. */
struct replay_bound_request {
    const struct trace_index *trace_index;
    const struct machine *machine;
    uint64_t budget_bytes;
    uint32_t cut;
    uint32_t tail;
    uint64_t tail_ns; /* 0: nothing is known */
};

/* The bound in ns that follows from what must be where at the cut; `least_ns` if that is more, or
   if memory is short. Pre: no plan is faster than `least_ns`, which is at least the ideal. */
uint64_t replay_bound(const struct replay_bound_request *request, uint64_t least_ns);
/* By how much the ops from the cut on take longer than their own time, at least: what a tail is. 0
   if memory is short. */
uint64_t replay_bound_after(const struct replay_bound_request *request);

#endif
