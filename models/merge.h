/* Ops of a layer merged to one: forward, backward, and what cannot be run again apart from it. */
#ifndef CAPU_MODELS_MERGE_H
#define CAPU_MODELS_MERGE_H

#include "models/tape.h"

/*
 * Replaces the tape's trace by one in which each layer's ops that follow each other are up to
 * three: what draws random numbers, what can be replayed, what updates. Tensors that live inside
 * one op only become its workspace, as large as the most of them that are alive at once.
 *
 * Errors: TOO_LARGE, NO_HOST_MEMORY; the trace is as before.
 */
capu_status merge_layers(struct tape *tape, struct error_text *error);

#endif
