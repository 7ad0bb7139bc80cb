/*
 * The executor: carries out the active guide, op by op.
 *
 * Each op is compared with the planned one. If they are the same, the executor issues what the plan
 * has before the op, then the caller issues the op, then the executor issues what the plan has
 * after it. Pages change hands by events only: work that takes a page waits, on the device, for the
 * last work of the tensor that had it. So nothing here maps memory, allocates or blocks the host.
 * There are three exceptions: strict mode, older contents that may still be read and are copied
 * out to a new host block, and unplaced guides, whose pages change hands by mapping (free_list.h).
 *
 * If an op is not the planned one, or anything else does not go as planned, the iteration leaves
 * the guide (leave_guide in residency.h) and continues in passive mode. What it needs of the
 * contents that the plan has dropped is recomputed (recovery.h).
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_EXECUTOR_H
#define CAPU_RUNTIME_EXECUTOR_H

#include "runtime/guide/guided.h"
#include "runtime/op/op.h"

struct following;

/*
 * In an iteration with an active guide, when the op's operands have been resolved. If it is the
 * planned op, its stage says so from here on, and everything that the plan has before it has been
 * issued. Otherwise the guide has been left. Fails only if the context is lost.
 */
capu_status executor_begin(struct following *following, struct op *op);

/* After a planned op was enqueued: issues what the plan has after it. Fails only if the context is
   lost. */
capu_status executor_end(struct following *following, const struct op *op);

/* capu_zero is about to end a tensor's contents, which is not an op. If a replay of the plan may
   still read them, the guide is left. Fails only if the context is lost. */
capu_status executor_before_zero(struct following *following, const struct tensor *tensor);

/* An op outside iterations, whose operands have been resolved, may use what the active guide has
   resident; for anything else the guide is left. Fails only if the context is lost. */
capu_status executor_visit(struct following *following, const struct op *op);

/* Whether the end of the op at hand must be marked at once: a copy out of the plan starts right
   after it, or the guide is unplaced, and the host will ask whether the op has completed. */
bool executor_is_followed(const struct following *following);

/* Notes what a replay of the op at hand will be called with, which stays valid until the next
   iteration ends. */
void executor_note_run(struct following *following, struct bound_op bound);

/* The iteration ends: leaves a guide that has not been carried out to its end, or that has given up
   what is to outlive the iteration. */
capu_status executor_finish(struct following *following);

#endif
