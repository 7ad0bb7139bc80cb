/*
 * Launches that the library may repeat, if the user asks for that (--recompute): it then drops what
 * they have computed, and computes it again where that is faster than copying it out and back.
 *
 * Such a launch is an op with a run function (capu_run) in place of an access. It is one of a
 * closed kernel that does the same each time (interpose/flow/repeat.h); it writes only tensors as a
 * whole, and loads only from the program's allocations, whose changes the library knows of; and it
 * has no attributes. So the driver has accepted a launch like it before (reach.c). The op has a
 * copy of its parameters. Code that the program unloads stays loaded, since launches of it may be
 * repeated.
 */
#ifndef CAPU_SHIM_RECOMPUTE_H
#define CAPU_SHIM_RECOMPUTE_H

#include "shim/core/code.h"
#include "shim/core/operands.h"
#include "shim/driver/driver.h"
#include "shim/launch/launch.h"

/* Whether a launch with these operands can be repeated. For the thread that has entered the core.
 */
bool recompute_takes(const struct code_kernel *kernel, const struct launch *launch,
                     const struct operands *operands);

/* Launches it as an op. *was_begun: the driver was asked to launch it. Pre: recompute_takes has
   said so. Errors: those of core_begin, and the driver's for the launch. */
CUresult recompute_run(CUfunction function, struct code_kernel *kernel, const struct launch *launch,
                       const struct operands *operands, bool *was_begun);

#endif
