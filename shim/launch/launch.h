/*
 * A launch as the program asks for it.
 *
 * launch.c has our functions for the driver's launches (driver_calls.h). A launch gets its operands
 * there before its access begins: from its slice (reach_add) if the kernel is closed. Otherwise it
 * gets all allocations, or those of its parameters if the user vouches for them.
 */
#ifndef CAPU_SHIM_LAUNCH_H
#define CAPU_SHIM_LAUNCH_H

#include "shim/core/code.h"
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

#endif
