/* Iterations: where a training step begins and ends. */
#ifndef CAPU_INCLUDE_ITERATION_H
#define CAPU_INCLUDE_ITERATION_H

#include "capuchin/context.h"
#include "capuchin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Begins an iteration. Transient tensors become undefined. Waits for the end of the iteration
 * before the last one, so that the host never runs further ahead than that. In mode guided it puts
 * a new plan in force, which waits for all work and maps memory, and with wait_for_plan also waits
 * for the plan of the iteration before.
 *
 * `label` tells iterations of different shape apart ("train", "validate"); copied, and kept as long
 * as the context, as all names are: a few labels for all iterations. NULL: not told.
 * Thread: the context's, as for every call that takes a context and does not say otherwise.
 * Stream order: compute stream. Errors: WRONG_ORDER (one is open), NO_HOST_MEMORY, OP_FAILED,
 * DEVICE_LOST.
 */
CAPU_API capu_status capu_iteration_begin(capu_context *context, const char *label);

/*
 * Ends the iteration; does not wait for it. Contents stay readable until the next one begins.
 * Errors: WRONG_ORDER (none is open, or a segment or access is), NO_HOST_MEMORY, DEVICE_LOST. In
 * mode guided an iteration that left its plan may have to recompute what outlives it: then as
 * capu_run. After a failure the iteration is open still and may be ended again.
 */
CAPU_API capu_status capu_iteration_end(capu_context *context);

#ifdef __cplusplus
}
#endif

#endif
