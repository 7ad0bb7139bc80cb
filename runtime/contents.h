/* Which tensors have contents, whatever those are and wherever they lie. */
#ifndef CAPU_RUNTIME_CONTENTS_H
#define CAPU_RUNTIME_CONTENTS_H

#include "runtime/tensors.h"

/*
 * Marks a tensor as holding contents, zero or not, or as holding none; keeps the lists of tensors
 * with contents. Pages and copies are the pager's business.
 */
void contents_define(capu_context *context, struct tensor *tensor);
void contents_forget(capu_context *context, struct tensor *tensor);

#endif
