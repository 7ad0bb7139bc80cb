/*
 * Enqueuing the work of a call on the compute stream.
 *
 * This is the only place where it is done, whether the call is an op of the program, a transfer, or
 * an op that a plan or recovery runs again. So the profiler's ranges, the bytes that they show, and
 * the words for a failure are the same for all. What is done before and after the work differs:
 * issue.h for calls of the program, recovery.h for ops that run again.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_ENQUEUE_H
#define CAPU_RUNTIME_ENQUEUE_H

#include "runtime/guide/guide.h"
#include "runtime/op/op.h"

struct guided;

/* Takes staging memory for what the work reads later; waits for the compute lane where the set is
   full. NO_HOST_MEMORY, TOO_LARGE, and a lost context. */
capu_status enqueue_stage(const struct guided *guided, uint64_t bytes, void **memory);

/*
 * Each enqueues the work of one call. Errors: DEVICE_FAILED (also: the op's function refused),
 * NO_HOST_MEMORY for staging, and a lost context. What was enqueued before the failure may still
 * run.
 */

/* An op of the program. */
capu_status enqueue_op(const struct guided *guided, const struct op *op);

/* The same once more, as a replay would run it. */
capu_status enqueue_again(const struct guided *guided, const struct op *op);

/* A transfer. */
capu_status enqueue_transfer(const struct guided *guided, const struct call *call,
                             struct host_side host);

/* The guide's op of this number again, with the arguments that it is bound to. */
capu_status enqueue_replay(const struct guided *guided, const struct guide *guide, uint32_t number);

#endif
