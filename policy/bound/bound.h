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

#endif
