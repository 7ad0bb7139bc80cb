/* Finding tensors by what the user gave, and naming them in messages and records. */
#ifndef CAPU_RUNTIME_LOOKUP_H
#define CAPU_RUNTIME_LOOKUP_H

#include "runtime/tensors.h"

/* The tensor at an address, or the error that fits: UNKNOWN_ADDRESS, ALREADY_FREED. */
capu_status lookup_tensor(capu_context *context, const void *address, const char *what,
                          struct tensor **tensor);

/* A tensor's name for people: its own, or its address. */
const char *lookup_name(capu_context *context, struct tensor *tensor);

#endif
