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

#include "shim/driver/driver_calls.h"

#include <stdbool.h>

/* The driver's function of that name; NULL: the driver has none, or there is no driver. */
void *real_find(const char *name);

/* Whether the driver could be opened. If not, a line has said why. */
bool real_is_open(void);

/* Whether an address is in the driver's own code. */
bool real_contains(const void *address);

#define REAL_MEMBER(name, parameters) CUresult(*name) parameters;
#define REAL_WRAPPED(name, takers, parameters, arguments) REAL_MEMBER(name, parameters)
#define REAL_TWICE(name, suffix, takers, parameters, arguments) \
    REAL_MEMBER(name, parameters)                               \
    REAL_MEMBER(name##suffix, parameters)
#define REAL_PASSED(name, parameters, ...) REAL_MEMBER(name, parameters)
struct real_calls {
    DRIVER_WRAPPED(REAL_WRAPPED)
    DRIVER_WRAPPED_TWICE(REAL_TWICE)
    DRIVER_PASSED_HOST(REAL_PASSED)
    DRIVER_PASSED_DEVICE(REAL_PASSED)
    DRIVER_PASSED_FREES(REAL_PASSED)
    DRIVER_CALLED(REAL_MEMBER)
};
#undef REAL_MEMBER
#undef REAL_WRAPPED
#undef REAL_TWICE
#undef REAL_PASSED

/* The driver's functions. One that the driver does not have returns NOT_FOUND, and all return
   NO_DEVICE if there is no driver. Thread: any. */
const struct real_calls *real_calls(void);

#endif
