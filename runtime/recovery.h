/*
 * Recovery: the rest of an iteration that left its plan.
 *
 * The plan gave tensors up that it would have recomputed, or that it took for dead. What the
 * program reads after all is recomputed by running again the ops that made it, with this
 * iteration's arguments; before an op overwrites what such a replay needs, everything that is owed
 * is recomputed. What cannot be recomputed fails the op that reads it, by name, before it runs.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_RECOVERY_H
#define CAPU_RUNTIME_RECOVERY_H

#include "runtime/tensors.h"

/*
 * Before the op at hand: recomputes what it reads and is lost, and what is owed if it overwrites
 * the sources. *has_run: something was run, and the op's operands are to be resolved again.
 * CONTENTS_LOST: a tensor it reads cannot be recomputed; and what making room gives.
 */
capu_status recovery_prepare(capu_context *context, bool *has_run);

/* Before contents of a tensor are changed by other means than an op. */
capu_status recovery_before_write(capu_context *context, struct tensor *tensor);

/* Whether the iteration's former guide has tensors of this allocation. */
bool recovery_has(const capu_context *context, const struct allocation *allocation);

/* A tensor is freed: if it is always resident, replays may read what is in its memory now. */
void recovery_note_freed(capu_context *context, const struct tensor *tensor);

/* A tensor is about to be cut up: what it needs of the guide is recomputed, if it can be, and with
   all that is owed or outlives the iteration the guide is let go. */
capu_status recovery_end_early(capu_context *context, struct tensor *tensor);

/* The iteration ends: recomputes what outlives it, and lets the guide go. After a failure it may be
   tried again. */
capu_status recovery_finish(capu_context *context);

#endif
