/* The real driver's functions, typed. */
#ifndef CAPU_SHIM_REAL_CALLS_H
#define CAPU_SHIM_REAL_CALLS_H

#include "shim/driver/driver_calls.h"

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
