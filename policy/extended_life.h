/* Tensors that are kept beyond their last access, for the sake of replays that read them. */
#ifndef CAPU_POLICY_EXTENDED_LIFE_H
#define CAPU_POLICY_EXTENDED_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/lower.h"
#include "policy/trace_index.h"

/*
 * Tensors that are dead in backward but read by several replayable ops whose outputs are larger and
 * wanted there live on until the last of those outputs is: then each replay is one op, not a chain.
 * `extended_life` gets, per tensor, the op up to which it lives on, or 0: as lower_run takes it.
 * False: there are none.
 */
bool extended_life_choose(const struct trace_index *trace_index, struct lower *lower,
                          uint32_t *extended_life);

#endif
