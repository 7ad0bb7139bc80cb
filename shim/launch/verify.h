/*
 * `capuchin run --verify`: at its first launches, a closed kernel is watched. Memory of the program
 * that is on the device and that the launch was not taken to store to must be the same before and
 * after, to the byte. Else a line says where, and the launch fails: what the library knows of the
 * kernel is wrong, and results cannot be trusted.
 *
 * It finds stores, on any device. A load that was not expected changes nothing; where what it reads
 * is not there, it faults by itself.
 *
 * A launch is watched while nothing else runs. Not in guided mode, whose copies go on meanwhile,
 * and not in strict mode, which watches by itself.
 */
#ifndef CAPU_SHIM_VERIFY_H
#define CAPU_SHIM_VERIFY_H

#include "shim/core/code.h"
#include "shim/core/operands.h"
#include "shim/driver/driver.h"

/* Loads what is needed, at the first call, if --verify is given. Pre: the core was not entered, as
   the driver may wait for the device. Thread: any. */
void verify_prepare(void);

/* The rest is for the thread that has entered the core. Whether the next launch of the kernel is
   watched; if so, waits for all work of the library. */
bool verify_wait(const struct code_kernel *kernel);

/* Pre: the access of such a launch, of these operands, has begun, and nothing was enqueued for it.
   False: it cannot be watched, and a line says so. */
bool verify_begin(const struct operands *operands);

/* Pre: verify_begin has returned true, and the launch was enqueued. Errors: LAUNCH_FAILED: memory
   has changed; those of the driver. */
CUresult verify_end(const struct code_kernel *kernel);

/* What the report says: launches that were watched, and those of them that changed other memory. */
void verify_figures(uint64_t *watched, uint64_t *failed);

#endif
