/*
 * Finding tensors by the address that a caller gave, with the error that fits, and naming them in
 * messages and records.
 */
#ifndef CAPU_RUNTIME_LOOKUP_H
#define CAPU_RUNTIME_LOOKUP_H

#include "runtime/tensor/memory.h"

/* The tensor at an address, or the error that fits: UNKNOWN_ADDRESS, ALREADY_FREED. */
capu_status lookup_tensor(struct memory *memory, const void *address, const char *what,
                          struct tensor **tensor);

/* The allocation that starts at an address, or the error that fits: the same, and UNKNOWN_ADDRESS
   inside an allocation. */
capu_status lookup_allocation(struct memory *memory, const void *address, const char *what,
                              struct allocation **allocation);

/* Whether the program has given the tensor a name. */
bool lookup_is_named(const struct tensor *tensor);

/* The name of a tensor for people: its own, or its address as text. */
const char *lookup_name(struct memory *memory, struct tensor *tensor);

#endif
