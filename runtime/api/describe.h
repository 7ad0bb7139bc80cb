/*
 * Which tensors a range of addresses meets. Not public: no program needs it, but the library that
 * stands in for the CUDA driver does (shim/), which manages memory that a program has divided in
 * ways of its own. It is all that the shim sees of the library beside the public headers.
 */
#ifndef CAPU_RUNTIME_DESCRIBE_H
#define CAPU_RUNTIME_DESCRIBE_H

#include "capuchin/memory.h"

#include <stdbool.h>

/* The part of a range that was not visited yet. */
struct describe_range {
    uint64_t address;
    uint64_t end; /* after the last byte */
};

/* Stores the state of the first tensor that a range meets, and takes the tensor's part off the
   range. False: the range is empty, or begins in no tensor; or the context is lost. Tensors may be
   split in between. Does not wait. Thread: as the context's calls. Stream order: none. */
bool describe_next(capu_context *context, struct describe_range *range, capu_tensor_state *state);

#endif
