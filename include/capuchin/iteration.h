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
 * before the previous one, so the host is never more than two iterations ahead of the device. In
 * guided mode it installs a new or different plan, which waits for all work and maps memory. It
 * waits for a first plan where that costs no more than to go on without, until 200 ms after
 * planning began; with wait_for_plan it also waits for the plan of the previous iteration, the one
 * that planning ends with.
 *
 * `label` distinguishes iterations of different shape ("train", "validate"). It is copied, and like
 * all names kept until the context is destroyed, so use a few labels, not one per iteration. NULL:
 * no label. See docs/guided.md, "Labels".
 *
 * Stream order: compute stream. After a failure no iteration is open. Errors: WRONG_ORDER (one is
 * already open), NO_HOST_MEMORY, DEVICE_FAILED, OP_FAILED, DEVICE_LOST.
 */
CAPU_API capu_status capu_iteration_begin(capu_context *context, const char *label);

/*
 * Ends the iteration without waiting for its work. Contents stay readable until the next iteration
 * begins. In guided mode, an iteration that left its plan first recomputes the tensors that outlive
 * it.
 *
 * Stream order: compute stream. After a failure the iteration is still open and may be ended again.
 * Errors: WRONG_ORDER (no iteration is open, or a segment is), NO_HOST_MEMORY, DEVICE_FAILED,
 * OP_FAILED, DEVICE_LOST; in guided mode, if tensors are recomputed, also those of capu_run.
 */
CAPU_API capu_status capu_iteration_end(capu_context *context);

#ifdef __cplusplus
}
#endif

#endif
