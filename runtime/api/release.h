/* Taking allocations away from their users. */
#ifndef CAPU_RUNTIME_RELEASE_H
#define CAPU_RUNTIME_RELEASE_H

#include "runtime/tensor/tensors.h"

/* Takes an allocation away from its user: it departs, or its slot rests. On failure it is
   as before. */
capu_status release_allocation(capu_context *context, struct allocation *allocation);

#endif
