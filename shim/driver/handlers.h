/*
 * What the shim does in place of the driver's functions, for calls that it takes: on_NAME has the
 * parameters of NAME, without its variants. Thread: any; none of them is called with the core's
 * lock held.
 */
#ifndef CAPU_SHIM_HANDLERS_H
#define CAPU_SHIM_HANDLERS_H

#include "shim/driver/driver_calls.h"

#define HANDLER(name, takers, parameters, arguments) CUresult on_##name parameters;
#define HANDLER_OF_TWO(name, suffix, takers, parameters, arguments) CUresult on_##name parameters;
DRIVER_WRAPPED(HANDLER)
DRIVER_WRAPPED_TWICE(HANDLER_OF_TWO)
#undef HANDLER
#undef HANDLER_OF_TWO

CUresult on_cuCtxSynchronize(void);

#endif
