/*
 * Strict mode runs each replayable op twice, and compares.
 *
 * A plan may run such an op again instead of keeping what it has written. So the op must give the
 * same bytes from the same operands and arguments. It does not if it draws from a random generator
 * of the host, or if its function for replays reads what has changed since.
 *
 * Where ops compute on the host (device.h: can_guard), an op is therefore run once more right after
 * it has run, as a replay would run it. What it only writes is filled with another pattern before,
 * one that is a number, not NaN. So bytes that it leaves unwritten differ, however few, and results
 * that depend on what was there before, be they integers. If results differ, a third run with the
 * first pattern shows whether they depend on the pattern. Afterwards the outputs are what the first
 * run has left there. Host memory holds as much as the op writes.
 *
 * A replay of a plan is compared as well: with a checksum of what the op had written.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_STRICT_AGAIN_H
#define CAPU_RUNTIME_STRICT_AGAIN_H

#include "runtime/strict/strict.h"

/* After an op whose run function has done what it says: runs it again, unless it is not replayable
   or there is no memory for that, or something was noted about it already. Notes what is wrong.
   OP_FAILED, DEVICE_LOST: it failed this time, which loses the context. */
capu_status strict_again_run(struct strict *strict, struct op *op);

/* After a replay, which has finished: OP_FAILED if it has written other bytes than the op. The
   context is lost then. */
capu_status strict_again_check(struct strict *strict, const struct guide *guide,
                               const struct guide_op *op);

#endif
