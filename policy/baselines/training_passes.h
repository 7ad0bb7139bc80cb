/*
 * Forward and backward as far as a trace shows them: forward ends at the peak of the unconstrained
 * iteration. For the baselines that work by layers.
 */
#ifndef CAPU_POLICY_TRAINING_PASSES_H
#define CAPU_POLICY_TRAINING_PASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/model/trace_index.h"
#include "policy/search/planner_shared.h"

/* For a tensor made and used in forward and needed in backward: its last access in forward, after
   which it is idle. TRACE_INDEX_NONE: persistent, not managed, or not of that kind. */
uint32_t training_passes_idle_gap(const struct trace_index *trace_index, uint32_t tensor);

/* Does the op read a parameter? */
bool training_passes_has_weights(const struct trace *trace, uint32_t op);

/*
 * Is the op a convolution or a matrix product? By the last part of its name, or because it reads a
 * parameter at least a sixteenth the size of the mean parameter, which parameters of norms and
 * biases never are.
 */
bool training_passes_is_product(const struct trace *trace, uint32_t op, uint64_t mean_bytes);

/* The mean bytes of a parameter; 0 without any. */
uint64_t training_passes_mean_parameter(const struct trace *trace);

/*
 * Drops everything that is idle between forward and backward and can be replayed, except what
 * is_kept (one per tensor) names; that outlives its last access if replays need it. Lowers to the
 * planning's plan; what does not fit is paged on demand. Errors: as lower_run.
 */
capu_status training_passes_keep_only(struct planning *planning, const uint8_t *is_kept);

#endif
