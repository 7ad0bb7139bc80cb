/*
 * The executor: carries out the guide in force, op by op.
 *
 * Each op is compared with the planned one. If it is the same, what the plan has before it is
 * issued, then the op, then what it has after it. Pages change hands by events only: whoever takes
 * a page makes its stream follow the last work of the tensor that had it. No call here maps,
 * allocates or waits, but in strict mode, and where older contents that may still be read are
 * copied out: those need host memory.
 *
 * An op that is not the planned one, and anything else that does not go as planned, ends the
 * guide's force (leave_guide); the iteration goes on in passive mode.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_EXECUTOR_H
#define CAPU_RUNTIME_EXECUTOR_H

#include "runtime/guide.h"

/*
 * In an iteration with a guide in force, when the op's operands have been resolved: *is_planned
 * tells whether it is the planned one, and everything before it has been issued. If not, the guide
 * is out of force. Fails where the context is lost.
 */
capu_status executor_begin(capu_context *context, bool *is_planned);

/* Behind a planned op that was enqueued: issues what the plan has after it. `arguments` stay valid
   until the next iteration ends. */
capu_status executor_end(capu_context *context);

/* capu_zero is about to end a tensor's contents, which is no op: where the plan may have replays to
   come that read them, it goes out of force. Fails where the context is lost. */
capu_status executor_before_zero(capu_context *context, const struct tensor *tensor);

/* Whether a copy out of the plan starts behind the op at hand. */
bool executor_is_followed(const capu_context *context);

/* Notes what a replay of the op at hand will be called with. */
void executor_note_run(capu_context *context, const void *arguments, uint64_t duration_ns);

/* The iteration ends: all of the guide must have been carried out. */
capu_status executor_finish(capu_context *context);

#endif
