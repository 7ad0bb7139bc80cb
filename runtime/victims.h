/* Resident tensors in the order in which they are evicted, see pager.h. */
#ifndef CAPU_RUNTIME_VICTIMS_H
#define CAPU_RUNTIME_VICTIMS_H

#include "runtime/tensors.h"

/* Puts a mapped tensor into the list it belongs to now, as the most recently used. */
void victims_touch(capu_context *context, struct tensor *tensor);

/* The tensor to evict next, never an operand of the op at hand; NULL: there is none. Least recently
   used first; what costs no copy before what does. */
struct tensor *victims_choose(const capu_context *context);

#endif
