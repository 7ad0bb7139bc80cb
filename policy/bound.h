/*
 * A lower bound on the iteration time of any valid plan (B1 in docs/policy.md: one cut, in closed
 * form). Holds for every budget and is monotone in it.
 */
#ifndef CAPU_POLICY_BOUND_H
#define CAPU_POLICY_BOUND_H

#include <stdint.h>

#include "policy/trace.h"
#include "policy/trace_index.h"

/* The bound in ns: at least the ideal. If memory is short: the ideal. */
uint64_t bound_cut(const struct trace_index *trace_index, const struct machine *machine,
                   uint64_t budget_bytes);

#endif
