/* Traces of a program that was changed: what advice is measured on. Each is a new trace, without a
   machine, which the caller finishes. */
#ifndef CAPU_TOOLS_VARIANT_H
#define CAPU_TOOLS_VARIANT_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/format/trace.h"

/* Is the op a step of the optimizer? It changes parameters or optimizer state, and apart from them
   only workspaces. */
bool variant_is_update(const struct trace *trace, uint32_t op);

/*
 * Errors of all: TOO_LARGE (a limit of traces), INVALID (a name that becomes too long),
 * NO_HOST_MEMORY. On failure *variant is zeroed.
 */

/* Every step of the optimizer comes as early as what it accesses allows; *moved is how many of them
   now come before other ops. */
capu_status variant_early_updates(const struct trace *trace, struct trace *variant,
                                  uint32_t *moved);
/* The ops that are chosen (one flag per op) can be replayed; their updates are left out. */
capu_status variant_replayable(const struct trace *trace, const bool *chosen,
                               struct trace *variant);
/* An op is split into parts, each of which takes its share of the time and of the op's large
   transient operands. Other ops access all parts of those. Pre: parts > 0. */
capu_status variant_split(const struct trace *trace, uint32_t op, uint32_t parts,
                          struct trace *variant);
/* The iteration runs in rounds with a share of the batch each. What the optimizer reads is
   accumulated, and the optimizer's steps run in the last round. If the trace does not say what
   grows with the batch, all that is neither persistent nor accumulated does, and all times but the
   optimizer's. Pre: rounds > 0. */
capu_status variant_rounds(const struct trace *trace, uint32_t rounds, struct trace *variant);

#endif
