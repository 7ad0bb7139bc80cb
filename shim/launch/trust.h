/*
 * `capuchin run --trust-parameters`: the user vouches that open kernels reach memory only through
 * pointers among their parameters. Thread: the one that has entered the core.
 */
#ifndef CAPU_SHIM_TRUST_H
#define CAPU_SHIM_TRUST_H

#include "shim/core/operands.h"
#include "shim/driver/driver.h"

/* Adds what the addresses in a launch's parameters lead to: whole allocations, updated. Parameters
   are given one by one, or, if that is NULL, as a block of bytes. False: they are not trusted, or
   the driver does not say how large they are, and nothing was added. */
bool trust_add(CUfunction function, void *const *parameters, const unsigned char *bytes,
               size_t byte_count, struct operands *operands);

#endif
