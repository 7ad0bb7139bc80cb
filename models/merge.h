/* Merges the ops of a layer, for traces at the granularity of layers. */
#ifndef CAPU_MODELS_MERGE_H
#define CAPU_MODELS_MERGE_H

#include "models/tape.h"

/*
 * Replaces the tape's trace by one in which each run of consecutive ops of a layer becomes at most
 * three ops: those that draw random numbers, those that can be replayed, and those that update.
 * They stay apart because a merged op can only be replayed if all its parts can. Tensors that live
 * only inside a merged op become its workspace, which is as large as the most of them that are
 * alive at the same time.
 *
 * Errors: TOO_LARGE, NO_HOST_MEMORY; the trace is as before.
 */
capu_status merge_layers(struct tape *tape, struct error_text *error);

#endif
