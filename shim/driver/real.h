/*
 * The real driver, opened once, by absolute path. Thread: any.
 *
 * Which file it is, `capuchin run` says in the environment variable CAPU_RUN_DRIVER. Without it,
 * which is when a program is started with this library and not by the command, it is the
 * libcuda.so.1 that the loader would find if it were not this library, or else one in the usual
 * folders.
 */
#ifndef CAPU_SHIM_REAL_H
#define CAPU_SHIM_REAL_H

#include <stdbool.h>

/* The driver's function of that name; NULL: the driver has none, or there is no driver. */
void *real_find(const char *name);

/* Whether the driver could be opened. If not, a line has said why. */
bool real_is_open(void);

/* Whether an address is in the driver's own code. */
bool real_contains(const void *address);

#endif
