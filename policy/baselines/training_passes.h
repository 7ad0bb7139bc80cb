/*
 * Forward and backward as far as a trace shows them: forward ends at the peak of the unconstrained
 * iteration. The planners that work by layers, vdnn, checkpoint and speed, are in the same file.
 */
#ifndef CAPU_POLICY_TRAINING_PASSES_H
#define CAPU_POLICY_TRAINING_PASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/model/trace_index.h"

/* For a tensor made and used in forward and needed in backward: its last access in forward, after
   which it is idle. TRACE_INDEX_NONE: persistent, not managed, or not of that kind. */
uint32_t training_passes_idle_gap(const struct trace_index *trace_index, uint32_t tensor);

/*
 * Is the op a convolution or a matrix product? By the last part of its name, or because it reads a
 * parameter at least a sixteenth the size of the mean parameter, which parameters of norms and
 * biases never are.
 */
bool training_passes_is_product(const struct trace *trace, uint32_t op, uint64_t mean_bytes);

/* The mean bytes of a parameter; 0 without any. */
uint64_t training_passes_mean_parameter(const struct trace *trace);

#endif
