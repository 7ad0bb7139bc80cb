/*
 * Names of tensors, for reports and errors: `allocation 3`, and for a part that was cut from it
 * `allocation 3+81920`, with the byte at which it begins. The number is one more than the
 * allocation's ordinal, so it does not depend on addresses. A name says nothing else of a tensor.
 *
 * For the thread that has entered the core. Where a name cannot be given, the old one stays.
 */
#ifndef CAPU_SHIM_TENSOR_NAMES_H
#define CAPU_SHIM_TENSOR_NAMES_H

#include <capuchin/capuchin.h>

/* Names a new allocation. */
void tensor_names_whole(capu_context *context, void *block, uint64_t ordinal);

/* Names the tensors from `first` to `last`, its end, which have just been one with the name
   `name`. */
void tensor_names_parts(capu_context *context, const char *name, uint64_t first, uint64_t last);

#endif
