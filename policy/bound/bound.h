/*
 * Lower bounds on the iteration time of any valid plan; docs/policy.md derives them. They hold for
 * every budget, also where iterations overlap at the border.
 */
#ifndef CAPU_POLICY_BOUND_H
#define CAPU_POLICY_BOUND_H

#include <stdint.h>

#include "policy/format/trace.h"
#include "policy/model/trace_index.h"

/* In closed form, in ns: at least the ideal. If memory is short: the ideal. Fast, and monotone in
   the budget. */
uint64_t bound_cut(const struct trace_index *trace_index, const struct machine *machine,
                   uint64_t budget_bytes);
/* The best that is known: bound_cut, or more where replays have to read what is away, too. */
uint64_t bound_iteration(const struct trace_index *trace_index, const struct machine *machine,
                         uint64_t budget_bytes);

/*
 * replay_bound.c: a bound that accounts for what replays read (derived in docs/policy.md): a
 * minimum cut under prices for memory and links.
 */

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
