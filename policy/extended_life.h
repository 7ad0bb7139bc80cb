/* Tensors kept beyond their last access because replays read them. */
#ifndef CAPU_POLICY_EXTENDED_LIFE_H
#define CAPU_POLICY_EXTENDED_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/lower.h"
#include "policy/trace_index.h"

/*
 * Sets, per tensor, the op up to which it is kept, or 0, as lower_run takes it. False: there are
 * none.
 */
bool extended_life_choose(const struct trace_index *trace_index, struct lower *lower,
                          uint32_t *extended_life);

#endif
