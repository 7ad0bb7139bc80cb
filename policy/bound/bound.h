/*
 * A lower bound on the iteration time of any valid plan, in closed form; docs/bounds.md derives it.
 * It holds for every budget, also where iterations overlap at the border. bound_iteration.h has a
 * tighter one.
 */
#ifndef CAPU_POLICY_BOUND_H
#define CAPU_POLICY_BOUND_H

#include <stdint.h>

#include "policy/format/trace.h"
#include "policy/model/trace_index.h"

/* In ns: at least the ideal. If memory is short: the ideal. Fast, and monotone in the budget. */
uint64_t bound_cut(const struct trace_index *trace_index, const struct machine *machine,
                   uint64_t budget_bytes);

/* The same, and by how many bytes each op's operands and what later ops read exceed the budget:
   `excesses` has one entry per op, and is unchanged if everything fits or memory is short. */
uint64_t bound_cut_excesses(const struct trace_index *trace_index, const struct machine *machine,
                            uint64_t budget_bytes, double *excesses);

#endif
