/*
 * A lower bound on the iteration time of any valid plan that accounts for what replays read
 * (derived in docs/policy.md): a minimum cut under prices for memory and links.
 */
#ifndef CAPU_POLICY_REPLAY_BOUND_H
#define CAPU_POLICY_REPLAY_BOUND_H

#include <stdint.h>

#include "policy/trace.h"
#include "policy/trace_index.h"

/* The bound in ns that follows from what must be where when op `cut` starts, or `least_ns` if that
   is more, or if memory is short. Pre: the op exists; no plan is faster than `least_ns`, which is
   at least the ideal. */
uint64_t replay_bound(const struct trace_index *trace_index, const struct machine *machine,
                      uint64_t budget_bytes, uint32_t cut, uint64_t least_ns);

#endif
