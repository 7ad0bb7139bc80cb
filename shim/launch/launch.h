/*
 * A launch as the program asks for it; launches that are watched, and launches that are repeated.
 *
 * launch.c has our functions for the driver's launches (driver_calls.h). A launch gets its operands
 * there before its access begins: from its slice (reach_add) if the kernel is closed. Otherwise it
 * gets all allocations, or those of its parameters if the user vouches for them.
 */
#ifndef CAPU_SHIM_LAUNCH_H
#define CAPU_SHIM_LAUNCH_H

#include "shim/core/code.h"
#include "shim/core/operands.h"
#include "shim/driver/driver.h"

#include <stdbool.h>

struct launch {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3]; /* 0: not given */
    uint32_t shared_bytes;
    bool is_cooperative; /* its blocks all run at once */
    bool is_next; /* all work before it was issued: what that leaves in memory it will read */
    struct parameters parameters;
    bool is_plain; /* not cooperative, and without attributes */
};

/* Whether a kernel cannot run here; a line says why. In a cooperative launch, the blocks wait for
   each other at a barrier that the driver provides. For the thread that has entered the core. */
bool launch_is_refused(const struct code_kernel *kernel, const struct launch *launch);

/* Learns from a node how the driver calls a kernel in graphs, that it calls `function` in launches.
   Thread: any, not entered. */
void launch_learn_node(CUgraphNode node, const void *function);

/* verify.c */

/*
 * `capuchin run --strict`, where strict mode of the library cannot watch accesses, which is
 * everywhere but on the host device: at its first launches, a closed kernel is watched. Memory of
 * the program that is on the device and that the launch was not taken to store to must be the same
 * before and after, to the byte. Otherwise a line says where, and the launch fails: what the
 * library knows of the kernel is wrong, and results cannot be trusted.
 *
 * It finds stores. A load that was not expected changes nothing; where what it reads is not there,
 * it faults by itself.
 *
 * A launch is watched while nothing else runs. Launches are not watched in guided mode, whose
 * copies go on meanwhile.
 */

/* Loads what is needed, at the first call with a context, if launches are to be watched. Pre: the
   core was not entered, as the driver may wait for the device. Thread: any. */
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

/* recompute.c */

/*
 * Launches that the library may repeat, if the user asks for that (--recompute): it then drops what
 * they have computed, and computes it again where that is faster than copying it out and back.
 *
 * Such a launch is an op with a run function (capu_run) in place of an access. It is one of a
 * closed kernel that does the same each time (repeat_is_same); it writes only tensors as a
 * whole, and loads only from the program's allocations, whose changes the library knows of; and it
 * has no attributes. So the driver has accepted a launch like it before (reach.c). The op has a
 * copy of its parameters. Code that the program unloads stays loaded, since launches of it may be
 * repeated.
 */

/* Whether a launch with these operands can be repeated. For the thread that has entered the core.
 */
bool recompute_takes(const struct code_kernel *kernel, const struct launch *launch,
                     const struct operands *operands);

/* Launches it as an op. *was_begun: the driver was asked to launch it. Pre: recompute_takes has
   said so. Errors: those of core_begin, and the driver's for the launch. */
CUresult recompute_run(CUfunction function, struct code_kernel *kernel, const struct launch *launch,
                       const struct operands *operands, bool *was_begun);

#endif
