/*
 * Recovery: the rest of an iteration that has left its guide.
 *
 * The plan has dropped tensors that it would have recomputed, or that were not read again when it
 * was recorded. If the program reads one of them after all, the op that made it is run again, with
 * the arguments of this iteration, and before that the ops that made its lost inputs.
 *
 * That is legal only if it gives the same bytes. Each write of a tensor counts up its version, and
 * the binding has the version that each access of each op read or made. So an op may run again if
 * it is replayable and every input has the version that the op read, or had it when it was lost;
 * and if it would not overwrite a newer small tensor, which cannot be saved on the host meanwhile.
 * Newer contents of other outputs are copied to the host first.
 *
 * Tensors that the plan would have recomputed must not become unrecoverable because the program
 * goes on. So before an op overwrites an input of such a replay, all of them are recomputed. And
 * a replay needs room for its operands. While the guide was active it had that, so it is kept:
 * before other pages become always resident and take it, what would no longer fit is recomputed.
 * Contents that cannot be recomputed fail the op that reads them, by name and before it runs.
 *
 * The plan itself also has ops run again, while it is followed (replay_run).
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_RECOVERY_H
#define CAPU_RUNTIME_RECOVERY_H

#include "runtime/guide/guide.h"
#include "runtime/op/op.h"
#include "runtime/tensor/tensors.h"

struct following;

/*
 * Runs the guide's op of this number again with this iteration's arguments. Pre: what it accesses
 * is resident, and compute follows the copies. Outputs that have not been overwritten since are
 * valid again. On failure they are not, and once something may have been written, earlier contents
 * are lost, too, and owed.
 */
capu_status replay_run(struct following *following, const struct guide *guide, uint32_t number);

/*
 * Before an op: recomputes lost tensors that it reads, and everything that is owed if it overwrites
 * a source of that. What runs again is spared from then on, no longer the operands of the op.
 * CONTENTS_LOST: a tensor that it reads cannot be recomputed; and what making room returns.
 */
capu_status recovery_prepare(struct following *following, const struct op *op);

/* Before the contents of a tensor change other than by an op. */
capu_status recovery_before_write(struct following *following, struct tensor *tensor);

/* So many more pages are about to become always resident. Lost tensors that could not be recomputed
   beside them are recomputed first, so that neither a read of one nor the end of the iteration
   fails for lack of room. Pre: the guide has been left if its pages are needed
   (pager_leave_guide_for). Errors: what making room returns. */
capu_status recovery_before_fixed(struct following *following, size_t page_count);

/* A tensor is to be kept that a plan may have given up: recomputes what it held. Pre: no guide is
   active that has it. CONTENTS_LOST: that is not possible; and what making room returns. */
capu_status recovery_restore(struct following *following, struct tensor *tensor);

/* Whether the iteration's former guide has tensors of this allocation. */
bool recovery_has(const struct following *following, const struct allocation *allocation);

/* A tensor is freed. If it is always resident, replays may still read its memory. */
void recovery_note_freed(struct following *following, const struct tensor *tensor);

/* A tensor is about to be split. If the guide has it, everything that is owed or outlives the
   iteration is recomputed now, all else that is lost if possible, and recovery ends. */
capu_status recovery_end_early(struct following *following, struct tensor *tensor);

/* Whether the active guide, followed to its end, has given up contents that outlive the iteration:
   its iteration freed the tensor, and this one has not. Pre: a guide is active. */
bool recovery_must_begin(const struct following *following);

/* The iteration ends: recomputes what outlives it, and ends recovery. After a failure it may be
   tried again. */
capu_status recovery_finish(struct following *following);

#endif
