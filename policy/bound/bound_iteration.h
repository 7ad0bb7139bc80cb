/*
 * The best lower bound on the iteration time that is known, to compare plans with. It takes
 * milliseconds, for which a search has better uses: the library does not have it.
 */
#ifndef CAPU_POLICY_BOUND_ITERATION_H
#define CAPU_POLICY_BOUND_ITERATION_H

#include <stdint.h>

#include "policy/format/trace.h"
#include "policy/model/trace_index.h"

/* In ns: bound_cut, or more where replays have to read what is away, too. */
uint64_t bound_iteration(const struct trace_index *trace_index, const struct machine *machine,
                         uint64_t budget_bytes);

#endif
